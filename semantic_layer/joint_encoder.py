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
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn import functional

from semantic_layer.bert import Bert, Layer, Linear
from semantic_layer.errors import VerifierFailed
from semantic_layer.joint_text import prepare
from semantic_layer.mapped_tensor import WeightFile
from semantic_layer.tokenizer_file import tokenizer_of
from semantic_layer.verifier import Pair
from semantic_layer.weight_delta import Tensors, unpack

_KEPT_TOKENS = 16_384  # of lower states; about 25 MB
_NUM_MATCHED = 4
_SHARPNESS = 20.0
_STEP = 8  # joint lengths are rounded up to this: few lengths mean few compiled kernels
_WARM_PAIRS = (("how do i bake bread?", "what is the way to bake bread?"),)


class _Read(NamedTuple):
    """One text after the lower layers: token ids and states ``(tokens, hidden)``."""

    ids: tuple[int, ...]
    states: torch.Tensor


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
        self._lower = Bert(base, join, half=True)
        tensors = unpack(load_file(weights), upper_layers(base, join, num_upper))
        self._marks = tensors["marks.weight"]
        self._upper = [
            Layer(tensors, f"upper.{i}.", self._lower.shape, half=True) for i in range(num_upper)
        ]
        self._align, self._doubts, self._mix, self._out = (
            Linear(tensors[f"{name}.weight"], tensors[f"{name}.bias"], half=True)
            for name in ("align", "doubts", "mix", "out")
        )
        self._tokenizer = tokenizer_of(base / "tokenizer.json")
        self._most_tokens = int(self.data["most_tokens"])
        self._knots = np.array(self.data["calibration"], dtype=float).T
        self._kept: OrderedDict[str, _Read] = OrderedDict()
        self._num_kept_tokens = 0
        self.fingerprint = blake2b(
            weights.read_bytes() + weights.with_suffix(".json").read_bytes(), digest_size=8
        ).hexdigest()
        self.score(_WARM_PAIRS)

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        if len(text) > self._most_tokens * 12:
            return False
        return len(self._tokenizer.encode(prepare(text)).ids) <= self._most_tokens

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the calibrated probability (0..1) of the same answer for each pair."""
        return [float(p) for p in np.interp(self.logits(pairs), *self._knots)]

    @torch.inference_mode()
    def logits(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the raw scores, before calibration."""
        if not pairs:
            return []
        written = [sorted((prepare(one), prepare(other))) for one, other in pairs]
        reads = self._read([text for pair in written for text in pair])
        joined = [(reads[one], reads[other]) for one, other in written]
        return [float(logit) for logit in self._join(joined)]

    def _join(self, pairs: list[tuple[_Read, _Read]]) -> torch.Tensor:
        """Pass pairs through the upper layers; return ``(pairs,)``."""
        lengths = [len(one.ids) + len(other.ids) for one, other in pairs]
        longest = -(-max(lengths) // _STEP) * _STEP
        x = torch.zeros(len(pairs), longest, self._lower.shape.hidden_size)
        matched = torch.zeros(len(pairs), _NUM_MATCHED)
        for row, (one, other) in enumerate(pairs):
            faced, matched[row] = face(one.states, other.states)
            both = torch.cat([one.states, other.states]) + self._marks[_kinds(one.ids, other.ids)]
            x[row, : lengths[row]] = both + self._align(faced)
        keep = torch.arange(longest) < torch.tensor(lengths)[:, None]
        mask = None if min(lengths) == longest else keep[:, None, None, :]
        for layer in self._upper:
            x = layer(x, mask)
        rows = torch.arange(len(pairs))
        first, second = x[:, 0], x[rows, [len(one.ids) for one, _ in pairs]]
        doubts = self._doubts(x).masked_fill(~keep[:, :, None], -1e4).amax(1)
        mixed = torch.cat([first + second, (first - second).abs(), doubts, matched], -1)
        return self._out(functional.gelu(self._mix(mixed))).squeeze(-1)

    def _read(self, texts: Sequence[str]) -> dict[str, _Read]:
        """Pass texts through the lower layers, those not kept from before in one batch."""
        found: dict[str, _Read] = {}
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

    def _encode(self, texts: list[str]) -> dict[str, _Read]:
        rows = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        lengths = [len(row) for row in rows]
        longest = -(-max(lengths) // 4) * 4
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        states = self._lower(ids, lengths)
        return {
            text: _Read(tuple(row), states[i, : len(row)].clone())
            for i, (text, row) in enumerate(zip(texts, rows, strict=True))
        }

    def _keep(self, text: str, read: _Read) -> None:
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


def face(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Hold the tokens of two texts, ``(tokens, hidden)`` each, against each other.

    Returns for every token, first text first, how it differs from the other text's tokens like it,
    its product with them, and the highest cosine: ``(tokens of both, 2 * hidden + 1)``; and of the
    highest cosines the least and the mean of each text ``(4,)``. Source: soft alignment as in
    Enhanced LSTM for Natural Language Inference (Chen et al., ACL 2017).
    """
    centre = torch.cat([one, other]).mean(0)
    cosine = functional.normalize(one - centre, dim=-1) @ functional.normalize(
        other - centre, dim=-1
    ).transpose(0, 1)
    like_one = (_SHARPNESS * cosine).softmax(1) @ other
    like_other = (_SHARPNESS * cosine.transpose(0, 1)).softmax(1) @ one
    best_one, best_other = cosine.amax(1), cosine.amax(0)
    states, like = torch.cat([one, other]), torch.cat([like_one, like_other])
    best = torch.cat([best_one, best_other])
    faced = torch.cat([states - like, states * like, best[:, None]], -1)
    lows, means = (
        sorted_pair(best_one.amin(), best_other.amin()),
        sorted_pair(best_one.mean(), best_other.mean()),
    )
    return faced, torch.stack([*lows, *means])


def sorted_pair(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lesser number first."""
    return torch.minimum(a, b), torch.maximum(a, b)


def _kinds(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    """Say of each token which text it stands in and whether the other text holds it too."""
    in_one, in_other = set(one), set(other)
    return [int(i in in_other) for i in one] + [2 + (i in in_one) for i in other]
