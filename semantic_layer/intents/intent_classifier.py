"""What kind of request a text is, by its vector and its words: linear, for one embedder. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from semantic_layer.intents.intent import CUES, SPECIAL, cue_weights, detect_intent
from semantic_layer.intents.intent_rules import PERSONAL, TRANSACTIONAL
from semantic_layer.stores.vector_index import Vector

Rows = npt.NDArray[np.float32]

_CUE_SCALE = 16.0  # a strong cue is then a quarter, beside a unit vector
_MOST_CUES = 8
_FREEDOM = 20.0  # inverse of the ridge on the weights
_STEPS = 400
_MARGIN = 0.25  # by which an intent that costs hits must be the likelier
_ACT_MARGIN = 0.0  # but an act that is taken for a question is worse than a lost hit
_HOW_TO = re.compile(
    r"\W*(?:(?:i|we|my|our|if|after|when|since|it|there)\b(?!.*\b(?:please|for me)\b)"
    r"[^.!?]{1,80}[,.;:] ?)?"
    r"(?:(?:hi|hey|hello|there|please|so|ok|okay|and|but|also|then)\W+)*"
    r"(?:how (?:do|does|did|can|could|should|would|to)\b"
    r"|what(?:'s| is| are) the (?:\w+ )?(?:way|process|procedure|steps) (?:to|for|of)\b"
    r"|what happens (?:if|when)\b|where (?:do|can|should) (?:i|you|we|one)\b)"
    r"|(?:(?:请问|你好|您好|那)[，, ]*)*(?!.*(?:帮我|给我|替我|帮忙))"
    r"[^，,。；;！!？?]{0,20}(?:怎么|如何|怎样|在哪里?|去哪里?)(?!样|回事)",
    re.IGNORECASE,
)
_HOW_ONE_DOES = re.compile(
    r"\W*(?:(?:hi|hey|hello|there|please|so|ok|okay|and|but|also|then)\W+)*"
    r"how (?:(?:do|can|could|should|would) (?:i|we|you|one|people|customers|users)|to)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LinearIntents:
    """Probabilities of ``names`` from features; ``weights`` is ``(dim + cues, names)``."""

    names: tuple[str, ...]
    weights: Rows
    bias: Rows

    @classmethod
    def fit(cls, rows: Rows, labels: Sequence[str], shares: Sequence[float] | None = None) -> Self:
        """Fit softmax regression, every label weighing the same.

        ``rows`` are `features`, ``shares`` each row's weight inside its label. Source: Nesterov,
        Introductory Lectures on Convex Optimization, 2004, section 2.2 (constant step scheme).
        """
        names = tuple(dict.fromkeys(labels))
        wanted = np.array([[label == name for name in names] for label in labels], np.float32)
        weight = (wanted.T * (1.0 if shares is None else np.asarray(shares, np.float32))).T
        weight = (weight / weight.sum(axis=0)).sum(axis=1) / len(names)
        mean = (weight @ rows).astype(np.float32)
        x = np.hstack([rows - mean, np.ones((len(rows), 1), np.float32)])
        ridge = np.full((x.shape[1], 1), 1 / (_FREEDOM * len(rows)), np.float32)
        ridge[-1] = 0
        step = 1 / (0.5 * np.linalg.norm((x.T * weight) @ x, 2) + ridge.max())
        at = now = np.zeros((x.shape[1], len(names)), np.float32)
        for count in range(_STEPS):
            error = (_softmax(x @ at) - wanted) * weight[:, None]
            before, now = now, at - step * (x.T @ error + ridge * at)
            at = now + count / (count + 3) * (now - before)
        return cls(names, now[:-1], now[-1] - mean @ now[:-1])

    def scores(self, row: Rows) -> dict[str, float]:
        """Return the probability of each intent for one row of features."""
        likely = _softmax(row @ self.weights + self.bias)
        return dict(zip(self.names, likely.tolist(), strict=True))


class IntentClassifier:
    """Names the intent of a text: by ``own`` intents, else by the seed ones, else by words.

    Without a vector, or before it has learnt anything, it goes by words alone. Who asks how
    something is done does not ask for it to be done: such a text is never transactional. How one
    does it ("how do I get my child's results") is the same for everybody, so never personal.
    """

    def __init__(self, seed: LinearIntents | None = None, own: LinearIntents | None = None) -> None:
        self._seed = seed
        self._own = own

    def learn(self, seed: LinearIntents, own: LinearIntents | None) -> None:
        """Go by these from now on; ``own`` scores both kinds of intents."""
        self._seed, self._own = seed, own

    def __call__(self, text: str, vector: Vector | None) -> str:
        """Return the intent of a text and, where there is one, its unit vector."""
        if vector is None or self._seed is None:
            return detect_intent(text)
        row = features(text, vector)
        seed = self._seed.scores(row)
        if self._own is not None:
            both = self._own.scores(row)
            best = max(both, key=both.__getitem__)
            if best not in seed and both[best] > max(both[name] for name in seed):
                return best
        if _HOW_TO.match(text):
            seed[TRANSACTIONAL] = 0.0
        if _HOW_ONE_DOES.match(text):
            seed[PERSONAL] = 0.0
        return _best(seed)


def features(text: str, vector: Vector) -> Rows:
    """Return a text's features: its vector, then what its words say, ``(dim + cues,)``."""
    weights = cue_weights(text)
    cues = [min(weights[cue], _MOST_CUES) / _CUE_SCALE for cue in CUES]
    return np.concatenate([vector, np.array(cues, np.float32)])


def _best(scores: Mapping[str, float]) -> str:
    """Return the likeliest intent; the special ones must be so by far."""
    plain = max((name for name in scores if name not in SPECIAL), key=scores.__getitem__)
    special = max((name for name in scores if name in SPECIAL), key=scores.__getitem__)
    margin = _ACT_MARGIN if special == TRANSACTIONAL else _MARGIN
    return special if scores[special] > scores[plain] + margin else plain


def _softmax(logits: Rows) -> Rows:
    raised: Rows = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Rows = raised / raised.sum(axis=-1, keepdims=True)
    return shares
