"""Exact bounds of a share that was counted: so many wrong among so many. Pure.

Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of
the binomial, Biometrika 26 (1934).
"""

import math
from collections.abc import Callable

import numpy as np

_HALVINGS = 50


def upper_bound(wrong: int, num: int, alpha: float = 0.05) -> float:
    """Return the share (0..1) above which ``wrong`` or fewer of ``num`` has probability < alpha."""
    assert 0 <= wrong <= num, "no more can be wrong than there are"
    if wrong == num:
        return 1.0
    return crossing(lambda share: math.exp(_log_at_most(wrong, num, share)) <= alpha)


def lower_bound(wrong: int, num: int, alpha: float = 0.05) -> float:
    """Return the share (0..1) under which ``wrong`` or more of ``num`` has probability < alpha."""
    return 1.0 - upper_bound(num - wrong, num, alpha)


def interval(wrong: int, num: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return both ends of the interval that holds the true share with this confidence."""
    alpha = (1.0 - confidence) / 2
    return lower_bound(wrong, num, alpha), upper_bound(wrong, num, alpha)


def crossing(is_past: Callable[[float], bool]) -> float:
    """Return the least share (0..1) that is past a line, given that all greater ones are too."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_past(middle) else (middle, high)
    return high


def _log_at_most(wrong: int, num: int, share: float) -> float:
    """Return log P(X <= wrong) of a binomial of ``num`` draws with ``share`` in (0, 1)."""
    k = np.arange(wrong, dtype=np.float64)
    steps = np.log((num - k) / (k + 1)) + math.log(share) - math.log1p(-share)
    return float(np.logaddexp.reduce(np.concatenate(([0.0], np.cumsum(steps))))) + (
        num * math.log1p(-share)
    )
