"""What a verifier's probabilities are worth between chats whose histories say the same. Pure.

Between any two questions that look alike most are not the same; between the last messages of chats
that agree in all else most are. So the same score means more there, and not each part as much: what
the assistant said matters less to a question than to a "yes" that takes it up. Least of all where
every message is in other words: there it is an "aside", that only speaks against a hit.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from semantic_layer.resources import load_json

DATA = "chat_verifier.json"
Part = Literal["last", "user", "assistant", "offer", "aside"]
PARTS: tuple[Part, ...] = ("last", "user", "assistant", "offer")
NAMES = ("least", *PARTS)
_SURE = 0.9  # from here on a part leaves no doubt
_LEAST_OFFER = 0.5  # below it a "yes" is to another question
_LEAST_PART = 0.3  # below it another part is another, for all the rest may be worth
_LEAST_ASIDE = 0.15
_LEASTS: Mapping[Part, float] = {"offer": _LEAST_OFFER, "aside": _LEAST_ASIDE}


@dataclass(frozen=True, slots=True)
class ContextScore:
    """A model over what the parts of two chats leave in doubt; see `lacks`.

    ``weights`` has one of each of `NAMES`; what they add up to, taken off 0, is read on ``knots``:
    (sum, log odds of the score), both rising. Fitted by tests/bench/semantic/fit_chats.py for one
    verifier, known by its fingerprint; of any other, the least score is taken as it is.
    """

    fingerprint: str
    weights: Mapping[str, float]
    knots: Sequence[tuple[float, float]]

    @classmethod
    def bundled(cls) -> "ContextScore":
        """Return the model of the bundled verifier."""
        data = load_json(DATA)
        knots = tuple((total, log_odds) for total, log_odds in data["knots"])
        return cls(data["fingerprint"], data["weights"], knots)

    def of(self, scores: Iterable[tuple[Part, float]], fingerprint: str) -> float:
        """Return what the scores of the parts are worth as a score of plain questions, 0..1.

        Where a part is surely not the same, it is at most the least score.
        """
        said = list(scores)
        least = min(score for _, score in said)
        if fingerprint != self.fingerprint:
            return least
        lacking = zip(NAMES, lacks(said), strict=True)
        logit = self._read(-sum(self.weights[name] * lack for name, lack in lacking))
        worth = 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))
        return min(worth, least) if is_another(said) else worth

    def _read(self, total: float) -> float:
        """Read the log odds, straight between the knots and as steep as the sum beyond them."""
        (low, first), (high, last) = self.knots[0], self.knots[-1]
        if total <= low or total >= high:
            return first + total - low if total <= low else last + total - high
        place = bisect_right(self.knots, total, key=lambda knot: knot[0])
        (x0, y0), (x1, y1) = self.knots[place - 1 : place + 1]
        return y0 + (y1 - y0) * (total - x0) / (x1 - x0)


def is_another(scores: Iterable[tuple[Part, float]]) -> bool:
    """Say whether a part of two chats is surely not the same."""
    return any(score < _LEASTS.get(part, _LEAST_PART) for part, score in scores)


def lacks(scores: Iterable[tuple[Part, float]]) -> tuple[float, ...]:
    """Return by how much the log odds of each of `NAMES` fall short of being sure, 0 or more."""
    short = dict.fromkeys(PARTS, 0.0)
    for part, score in scores:
        if part not in short:
            continue
        short[part] = max(short[part], _log_odds(_SURE) - _log_odds(score), 0.0)
    return (max(short.values()), *short.values())


def _log_odds(score: float) -> float:
    bounded = min(max(score, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))
