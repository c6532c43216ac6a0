"""Streaming quantiles of durations in bounded memory; knows nothing of what was timed."""

import math
from collections import Counter

SUB_BUCKETS = 32  # per power of two: a quantile is off by at most 1/64 of its value
UNIT_S = 1e-6
MAX_UNITS = 1 << 40  # twelve days; longer ones count as this


class LatencyHistogram:
    """Counts durations in buckets whose width grows with the value.

    Source: G. Tene, HdrHistogram (log-linear buckets); here at most 1,152 of them.
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.count = 0
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration; negative ones count as zero."""
        units = min(max(int(seconds / UNIT_S), 0), MAX_UNITS)
        self._counts[_bucket(units)] += 1
        self.count += 1
        self.total_s += seconds

    def quantile(self, share: float) -> float | None:
        """Return the duration in seconds that ``share`` (0..1) of all lie at or below."""
        if not self.count:
            return None
        wanted = max(1, math.ceil(share * self.count))
        for bucket in sorted(self._counts):
            wanted -= self._counts[bucket]
            if wanted <= 0:
                return _middle(bucket) * UNIT_S
        raise AssertionError("the counts sum to the count")

    @property
    def mean_s(self) -> float | None:
        """The mean in seconds."""
        return self.total_s / self.count if self.count else None


def _bucket(units: int) -> int:
    shift = max(units.bit_length() - SUB_BUCKETS.bit_length(), 0)
    return shift * SUB_BUCKETS + (units >> shift)


def _middle(bucket: int) -> float:
    if bucket < 2 * SUB_BUCKETS:
        return float(bucket)
    shift = bucket // SUB_BUCKETS - 1
    low = (bucket - shift * SUB_BUCKETS) << shift
    return low + (1 << shift) / 2
