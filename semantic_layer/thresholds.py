"""The score a candidate must reach, by intent. Pure.

A threshold is a precision: the score is a probability, so the threshold bounds the wrong share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from semantic_layer.pooled import PooledThresholds, log_odds, shifted
from semantic_layer.trial import Arm, Trial

PRIORS: Mapping[str, float] = MappingProxyType(
    {
        "factual": 0.95,
        "code": 0.93,
        "translation": 0.97,
        "summarization": 0.90,
        "creative": 0.98,
        "general": 0.92,
        "time_sensitive": 0.95,
        "personal": 0.98,
        "transactional": 0.98,
    }
)
PRIOR_BUDGET = 0.01
DEFAULT_PRIOR = 0.95
REFERENCE = "general"  # the intent whose threshold is fitted


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Per-intent thresholds (0..1): a manual one beats a calibrated one beats the prior.

    ``entries`` are those of entries with a history; a manual one beats them too. An unknown intent
    is judged by ``default``. 1 admits equal texts only. Intents that are ``off`` are answered by
    exact repeats only. An intent under trial has two, by the request's key.
    """

    priors: Mapping[str, float] = field(default_factory=lambda: PRIORS)
    calibrated: Mapping[str, float] = field(default_factory=dict)
    manual: Mapping[str, float] = field(default_factory=dict)
    entries: Mapping[str, float] = field(default_factory=dict)
    default: float = DEFAULT_PRIOR
    off: frozenset[str] = frozenset()
    trials: Mapping[str, Trial] = field(default_factory=dict)

    @classmethod
    def within(
        cls,
        budget: float,
        own: Mapping[str, float] | None = None,
        more: Iterable[str] = (),
        pooled: PooledThresholds | None = None,
    ) -> "Thresholds":
        """Return priors for a budget (0..1), the wrong share among served hits to aim at.

        ``own`` are the budgets of intents that have another one, ``more`` the names of intents
        beside the seed ones. ``pooled`` gives what was proven of `REFERENCE`; other intents keep
        their distance to it in log odds. Without it nothing is proven: `PRIORS` are meant for
        `PRIOR_BUDGET`, and another budget moves each threshold's distance to certainty in
        proportion. 0 admits equal texts only.
        """
        of, priors = own or {}, {**dict.fromkeys(more, DEFAULT_PRIOR), **PRIORS}
        return cls(
            priors={i: _moved(prior, of.get(i, budget), pooled) for i, prior in priors.items()},
            default=_moved(DEFAULT_PRIOR, budget, pooled),
        )

    def tried_on(self, intent: str, key: str) -> tuple[Arm, float | None] | None:
        """Return a request's arm of the intent's trial and its threshold; None without a trial."""
        trial = self.trials.get(intent)
        if trial is None or intent in self.off:
            return None
        arm = trial.arm_of(key)
        return arm, trial.threshold(arm)

    def of(self, intent: str, asked: float | None = None, entry_id: str | None = None) -> float:
        """Return the threshold; a caller's wish only ever makes it stricter.

        With ``entry_id`` it is the one that this entry must be served at.
        """
        own = self.manual.get(intent)
        if own is None and entry_id is not None:
            own = self.entries.get(entry_id)
        if own is None:
            own = self.calibrated.get(intent, self.prior(intent))
        return own if asked is None else max(own, asked)

    def prior(self, intent: str) -> float:
        """Return what holds for an intent as long as nothing is known."""
        return self.priors.get(intent, self.default)


def distance(prior: float) -> float:
    """Return how far an intent's prior lies above that of `REFERENCE`, in log odds."""
    return log_odds(prior) - log_odds(PRIORS[REFERENCE])


def _moved(prior: float, budget: float, pooled: PooledThresholds | None) -> float:
    if pooled is not None:
        return shifted(pooled.of(budget), distance(prior))
    return max(0.0, 1 - (1 - prior) * budget / PRIOR_BUDGET)
