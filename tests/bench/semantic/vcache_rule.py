"""vCache's published rule: a logistic curve per stored text says how often to explore.

Written from the paper; nothing here is used by the product. Each stored text keeps its observations
(cosine, right). The chance that its answer is right at cosine s is 1 / (1 + exp(-gamma (s - t))).
With t' the upper end of a confidence interval of t at level 1 - eps, the answer is right with
probability at least (1 - eps) times the curve through t'; exploring with probability
tau = min over eps of 1 - delta / (1 - that) keeps the error under delta.

Source: Schroeder et al., vCache: Verified Semantic Prompt Caching (ICLR 2026, arXiv 2502.03771),
section 4; the two observations to begin with, the six that are the least, and the spread of t where
the two kinds are separable are its implementation's.
"""

import math
import random
import warnings
from collections import defaultdict
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from sklearn.linear_model import LogisticRegression

from tests.bench.semantic.stream import Near, Verdict

LEAST_OBSERVATIONS = 6
_SEEDS = ((0.0, False), (1.0, True))
_EPSILONS = np.linspace(1e-6, 1 - 1e-6, 50)
_SEPARABLE = ((6, 0.035), (8, 0.026), (11, 0.0126), (16, 0.0105), (26, 0.0085))


class VCacheRule:
    """Decides by the nearest stored text only."""

    def __init__(self, delta: float, seed: int = 0) -> None:
        self.name = f"vCache's rule, delta {delta:.0%}"
        self._delta = delta
        self._random = random.Random(seed)
        self._seen: dict[int, list[tuple[float, bool]]] = defaultdict(lambda: list(_SEEDS))

    async def decide(self, asked: int, near: Near) -> int | None:
        if not near:
            return None
        stored, similarity = near[0]
        explore = self.exploration(self._seen[stored], similarity)
        return None if self._random.random() <= explore else stored

    async def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        if served is None and near:
            stored, similarity = near[0]
            self._seen[stored].append((similarity, verdict(stored) is True))

    def exploration(self, seen: Sequence[tuple[float, bool]], similarity: float) -> float:
        """Return the probability of generating in spite of the stored answer."""
        if len(seen) < LEAST_OBSERVATIONS:
            return 1.0
        middle, steepness, spread = _curve(seen)
        upper = np.array([NormalDist().inv_cdf(1 - eps) for eps in _EPSILONS])
        worst = np.clip(middle + upper * math.sqrt(spread), 0.0, 1.0)
        surely = (1 - _EPSILONS) / (1 + np.exp(-np.clip(steepness * (similarity - worst), -60, 60)))
        return float(np.min(1 - self._delta / (1 - surely)))


def _curve(seen: Sequence[tuple[float, bool]]) -> tuple[float, float, float]:
    """Return the middle, the steepness and the variance of the middle of the fitted curve."""
    x = np.column_stack((np.ones(len(seen)), [similarity for similarity, _ in seen]))
    y = np.array([right for _, right in seen], dtype=int)
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-8, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
    bias, slope = model.coef_[0]
    slope = max(float(slope), 1e-6)
    middle = float(np.clip(-bias / slope, 0.0, 1.0))
    if x[y == 1, 1].min() > x[y == 0, 1].max():
        return middle, slope, [spread for num, spread in _SEPARABLE if num <= len(seen)][-1]
    share = 1 / (1 + np.exp(-x @ model.coef_[0]))
    information = x.T @ ((share * (1 - share))[:, None] * x)
    gradient = np.array([-1 / slope, bias / slope**2])
    return middle, slope, max(0.0, float(gradient @ np.linalg.pinv(information) @ gradient))
