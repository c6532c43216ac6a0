"""The counters of one gateway since its start, by name and label values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals by metric, without ``strata_`` and ``_total``, and by their labels' values."""

    totals: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)

    def by(self, name: str) -> Mapping[Labels, float]:
        """Return a metric's totals by label values, those above zero."""
        return {labels: value for labels, value in self.totals.get(name, {}).items() if value}

    def sum(self, name: str, *some: str) -> float:
        """Add up a metric, over the children whose first labels have these values."""
        return sum(v for labels, v in self.by(name).items() if labels[: len(some)] == some)
