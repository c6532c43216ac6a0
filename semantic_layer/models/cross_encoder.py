"""Any cross-encoder that `sentence_transformers` loads, as a verifier."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from semantic_layer.errors import VerifierFailed
from semantic_layer.models.bert_encoder import fingerprint_of
from semantic_layer.models.verifier import Pair

_PROBES = (("strata", "layers"), ("相似", "相同"))
_FALLBACK_WINDOW_TOKENS = 512


class LibraryCrossEncoder:
    """Scores pairs with `sentence_transformers.CrossEncoder`; see `PairScorer`.

    Its one output, after the sigmoid, is taken for the probability of the same answer; both orders
    are asked and the lesser counts.

    Raises:
        VerifierFailed: there is no such model, it does not load, or it gives more than one number.
    """

    def __init__(self, name: str, *, device: str = "cpu") -> None:
        try:
            from sentence_transformers import CrossEncoder  # noqa: PLC0415 - heavy
            from torch import nn  # noqa: PLC0415 - the same

            self._model: Any = CrossEncoder(name, device=device, activation_fn=nn.Sigmoid())
        except (ImportError, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise VerifierFailed(f"verifier {name} does not load: {line}") from error
        if self._model.num_labels != 1:
            raise VerifierFailed(
                f"verifier {name} gives {self._model.num_labels} numbers for a pair, not one"
            )
        self._most_tokens = int(self._model.max_seq_length or _FALLBACK_WINDOW_TOKENS) // 2
        self.fingerprint = self._fingerprint(name)

    def fits(self, text: str) -> bool:
        """Say whether a text fills at most half of the model's window."""
        ids = self._model.tokenizer(text, truncation=False, verbose=False)["input_ids"]
        return len(ids) <= self._most_tokens

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer for each pair."""
        if not pairs:
            return []
        both = [*pairs, *((other, one) for one, other in pairs)]
        scores = self._model.predict(both, show_progress_bar=False, convert_to_numpy=True)
        return [float(score) for score in np.minimum(scores[: len(pairs)], scores[len(pairs) :])]

    def _fingerprint(self, name: str) -> str:
        if Path(name).is_dir():
            return fingerprint_of(Path(name))
        probe = np.round(self.score(_PROBES), 3)
        return blake2b(name.encode() + probe.tobytes(), digest_size=16).hexdigest()
