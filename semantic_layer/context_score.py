"""What a verifier's probability is worth between chats whose histories say the same. Pure.

Between any two questions that look alike most are not the same; between the last messages of chats
that agree in all else most are. So the same score means more there.
"""

import math
from dataclasses import dataclass

from semantic_layer.resources import load_json

DATA = "chat_verifier.json"


@dataclass(frozen=True, slots=True)
class ContextScore:
    """A logistic curve over the log odds of the least score of a pair of chats.

    Fitted by tests/bench/semantic/fit_chats.py for one verifier, known by its fingerprint; of any
    other, scores are taken as they are.
    """

    fingerprint: str
    slope: float
    bias: float

    @classmethod
    def bundled(cls) -> "ContextScore":
        """Return the curve of the bundled verifier."""
        data = load_json(DATA)
        return cls(data["fingerprint"], data["slope"], data["bias"])

    def of(self, score: float, fingerprint: str) -> float:
        """Return the probability (0..1) that the answer is the same."""
        if fingerprint != self.fingerprint:
            return score
        bounded = min(max(score, 1e-4), 1 - 1e-4)
        logit = self.slope * math.log(bounded / (1 - bounded)) + self.bias
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, logit))))
