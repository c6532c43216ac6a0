"""vCache's published rule: a logistic curve per stored text says how often to explore.

Written from the paper; nothing here is used by the product. Each stored text keeps its observations
(cosine, right). The chance that its answer is right at cosine s is 1 / (1 + exp(-gamma (s - t))).
With t' the upper end of a confidence interval of t at level 1 - eps, the answer is right with
probability at least (1 - eps) times the curve through t'; exploring with probability
tau = min over eps of 1 - delta / (1 - that) keeps the error under delta.

Source: Schroeder et al., vCache: Verified Semantic Prompt Caching (ICLR 2026, arXiv 2502.03771),
section 4; the two observations to begin with, the six that are the least, and the spread of t where
the two kinds are separable are its implementation's. There no curve is the likeliest, so what comes
of it depends on where the search stops: `fast_coefficients` is the search that
`published_coefficients` makes, without what scikit-learn does around it (ten times as long).
"""

import math
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from tests.bench.semantic.stream import Near, Verdict

LEAST_OBSERVATIONS = 6
_SEEDS = ((0.0, False), (1.0, True))
_SEPARABLE = ((6, 0.035), (8, 0.026), (11, 0.0126), (16, 0.0105), (26, 0.0085))
_EPSILONS = np.linspace(1e-6, 1 - 1e-6, 50)
_UPPER = np.array([NormalDist().inv_cdf(1 - eps) for eps in _EPSILONS])
_TOLERANCE, _MOST_STEPS = 1e-8, 1000

Array = npt.NDArray[np.float64]
Seen = Sequence[tuple[float, bool]]  # (cosine, right), the two to begin with among them
Coefficients = Callable[[Array, Array], tuple[float, float]]


class VCacheRule:
    """Decides by the nearest stored text only."""

    def __init__(self, delta: float, seed: int = 0) -> None:
        self.name = f"vCache's rule, delta {delta:.0%}"
        self._delta = delta
        self._random = random.Random(seed)
        self._seen: dict[int, list[tuple[float, bool]]] = defaultdict(lambda: list(_SEEDS))
        self._curves: dict[int, Curve] = {}

    async def decide(self, asked: int, near: Near) -> int | None:
        if not near:
            return None
        stored, similarity = near[0]
        explore = self._exploration(stored, similarity)
        return None if self._random.random() <= explore else stored

    async def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        if served is None and near:
            stored, similarity = near[0]
            self._seen[stored].append((similarity, verdict(stored) is True))
            self._curves.pop(stored, None)

    def _exploration(self, stored: int, similarity: float) -> float:
        if len(self._seen[stored]) < LEAST_OBSERVATIONS:
            return 1.0
        if stored not in self._curves:
            self._curves[stored] = Curve.through(self._seen[stored])
        return self._curves[stored].exploration(similarity, self._delta)


@dataclass(frozen=True, slots=True)
class Curve:
    """The fitted curve: its ``middle`` t, the ``variance`` of that, its ``steepness`` gamma."""

    middle: float
    steepness: float
    variance: float

    @classmethod
    def through(cls, seen: Seen, coefficients: Coefficients | None = None) -> "Curve":
        """Fit it to observations of both kinds."""
        similarity = np.array([similarity for similarity, _ in seen])
        right = np.array([right for _, right in seen])
        bias, slope = (coefficients or fast_coefficients)(similarity, right)
        steepness = max(slope, 1e-6)
        middle = float(np.clip(-bias / steepness, 0.0, 1.0))
        if similarity[right].min() > similarity[~right].max():
            return cls(middle, steepness, [v for num, v in _SEPARABLE if num <= len(seen)][-1])
        x = np.column_stack((np.ones(len(seen)), similarity))
        share = 1 / (1 + np.exp(-(bias + slope * similarity)))
        information = x.T @ ((share * (1 - share))[:, None] * x)
        gradient = np.array([-1 / steepness, bias / steepness**2])
        variance = float(gradient @ np.linalg.pinv(information) @ gradient)
        return cls(middle, steepness, max(0.0, variance))

    def exploration(self, similarity: float, delta: float) -> float:
        """Return the probability of generating in spite of the stored answer."""
        worst = np.clip(self.middle + _UPPER * math.sqrt(self.variance), 0.0, 1.0)
        odds = np.clip(self.steepness * (similarity - worst), -60, 60)
        surely = (1 - _EPSILONS) / (1 + np.exp(-odds))
        return float(np.min(1 - delta / (1 - surely)))


def published_coefficients(similarity: Array, right: Array) -> tuple[float, float]:
    """Return bias and slope of the likeliest curve, by what vCache's implementation calls."""
    x = np.column_stack((np.ones(len(similarity)), similarity))
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=_TOLERANCE, max_iter=_MOST_STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, right.astype(int))
    bias, slope = model.coef_[0]
    return float(bias), float(slope)


def fast_coefficients(similarity: Array, right: Array) -> tuple[float, float]:
    """Return the same by the same search (L-BFGS on the mean loss, stopped where it stops)."""
    sign, num = np.where(right, -1.0, 1.0), len(right)

    def loss(weights: Array) -> tuple[float, Array]:
        margin = sign * (weights[0] + weights[1] * similarity)
        small = np.exp(-np.abs(margin))
        total = (np.maximum(margin, 0.0) + np.log1p(small)).sum()
        pull = np.where(margin > 0, 1.0, small) / (1 + small) * sign
        return total / num, np.array([pull.sum(), pull @ similarity]) / num

    stop = {"gtol": _TOLERANCE, "ftol": 64 * np.finfo(np.float64).eps}
    found = minimize(
        loss, np.zeros(2), jac=True, method="L-BFGS-B",
        options={"maxiter": _MOST_STEPS, "maxls": 50, **stop},
    )  # fmt: skip
    bias, slope = found.x
    return float(bias), float(slope)
