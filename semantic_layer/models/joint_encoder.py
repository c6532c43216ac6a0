"""The bundled verifier: a cross-encoder whose lower half is the bundled embedder's, untouched.

Each text passes the lower layers alone, so what they make of it can be kept; the upper layers read
both texts together. Source: Precomputing Transformer Term Representations (MacAvaney et al., SIGIR
2020). Weights and calibration: tests/bench/semantic/train_verifier.py.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from semantic_layer.errors import VerifierFailed
from semantic_layer.models.bert import Bert
from semantic_layer.models.chosen_joint import joined
from semantic_layer.models.joint_layers import Read, ReadPair
from semantic_layer.models.joint_text import prepare
from semantic_layer.models.layer_weights import layer_weights
from semantic_layer.models.mapped_tensor import WeightFile
from semantic_layer.models.sample_texts import PAIRS, TEXTS
from semantic_layer.models.tokenizer_file import tokenizer_of
from semantic_layer.models.verifier import Pair
from semantic_layer.models.weight_delta import Tensors, unpack

_KEPT_TOKENS = 49_152  # of lower states in bfloat16, as in training; about 38 MB, 4,000 questions
_NUM_ADDED = 3  # tokens beside those that stand for at least a byte each: two ends and a space


class JointEncoder:
    """Scores pairs of texts; symmetric in the two. One thread at a time; see `PairScorer`.

    Args:
        base: folder of the embedder whose lower layers and words are used.
        weights: ``verifier.safetensors`` with ``verifier.json`` beside it.

    Raises:
        VerifierFailed: a file is broken, or ``base`` is not the model trained upon.
    """

    def __init__(self, base: Path, weights: Path) -> None:
        try:
            self._load(base, weights)
        except (OSError, ValueError, KeyError, SafetensorError, RuntimeError) as error:
            raise VerifierFailed(f"verifier {weights.name} does not load: {error!r}") from error

    def _load(self, base: Path, weights: Path) -> None:
        self.data: dict[str, Any] = json.loads(weights.with_suffix(".json").read_text("utf-8"))
        join, num_upper = self.data["join"], self.data["upper"]
        self._tokenizer = tokenizer_of(base / "tokenizer.json")
        self._lower = Bert(base, self._ids_of([prepare(text) for text in TEXTS]), join)
        tensors = unpack(load_file(weights), upper_layers(base, join, num_upper))
        self._most_tokens = int(self.data["most_tokens"])
        self._knots = np.array(self.data["calibration"], dtype=float).T
        self._kept: OrderedDict[str, Read] = OrderedDict()
        self._num_kept_tokens = 0
        self.fingerprint = blake2b(
            weights.read_bytes() + weights.with_suffix(".json").read_bytes(), digest_size=8
        ).hexdigest()
        upper = [layer_weights(tensors, f"upper.{i}.") for i in range(num_upper)]
        self._joint = joined(tensors, upper, self._lower.shape, self._read_pairs(PAIRS))
        self.score(PAIRS[:1])

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        if len(text) > self._most_tokens * 12:
            return False
        written = prepare(text)
        if len(written.encode()) + _NUM_ADDED <= self._most_tokens:
            return True
        return len(self._tokenizer.encode(written).ids) <= self._most_tokens

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the calibrated probability (0..1) of the same answer for each pair."""
        return [float(p) for p in np.interp(self.logits(pairs), *self._knots)]

    def logits(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the raw scores, before calibration."""
        return self._joint(self._read_pairs(pairs)) if pairs else []

    def _read_pairs(self, pairs: Sequence[Pair]) -> list[ReadPair]:
        """Return the lower layers' states of both texts, in the order of the alphabet."""
        written = [sorted((prepare(one), prepare(other))) for one, other in pairs]
        reads = self._read([text for pair in written for text in pair])
        return [(reads[one], reads[other]) for one, other in written]

    def _read(self, texts: Sequence[str]) -> dict[str, Read]:
        """Pass texts through the lower layers, those not kept from before in one batch."""
        found: dict[str, Read] = {}
        for text in texts:
            if text in self._kept:
                self._kept.move_to_end(text)
                found[text] = self._kept[text]
        new = [text for text in dict.fromkeys(texts) if text not in found]
        if new:
            found |= self._encode(new)
            for text in new:
                self._keep(text, found[text])
        return found

    def _encode(self, texts: list[str]) -> dict[str, Read]:
        rows = self._ids_of(texts)
        return {
            text: Read(torch.tensor(row, dtype=torch.int32), states.bfloat16())
            for text, row, states in zip(texts, rows, self._lower(rows), strict=True)
        }

    def _ids_of(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]

    def _keep(self, text: str, read: Read) -> None:
        self._kept[text] = read
        self._num_kept_tokens += len(read.ids)
        while self._num_kept_tokens > _KEPT_TOKENS:
            _, oldest = self._kept.popitem(last=False)
            self._num_kept_tokens -= len(oldest.ids)


def upper_layers(base: Path, join: int, num_layers: int) -> Tensors:
    """Return the embedder's own weights of the layers above the join, named as ours are."""
    file, found = WeightFile(base / "model.safetensors"), {}
    for name in file.names:
        _, mark, rest = name.partition("encoder.layer.")
        number, _, parameter = rest.partition(".")
        if mark and join <= int(number) < join + num_layers:
            found[f"upper.{int(number) - join}.{parameter}"] = file.read(name)
    return found
