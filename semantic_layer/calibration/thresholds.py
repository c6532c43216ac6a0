"""The score a candidate must reach, by intent. Pure.

A threshold is a precision: the score is a probability, so the threshold bounds the wrong share.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from semantic_layer.calibration.pooled import PooledThresholds, log_odds, shifted
from semantic_layer.calibration.settled import settled_from
from semantic_layer.calibration.trial import Arm, Trial

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
Start = Literal["fitted", "proven"]
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
        trap_odds: float = 1.0,
    ) -> "Thresholds":
        """Return priors for a budget (0..1), the wrong share among served hits to aim at.

        ``own`` are the budgets of intents that have another one, ``more`` the names of intents
        beside the seed ones. ``pooled`` gives what was proven of `REFERENCE`; other intents keep
        their distance to it in log odds. Without it nothing is proven: `PRIORS` are meant for
        `PRIOR_BUDGET`, and another budget moves each threshold's distance to certainty in
        proportion. 0 admits equal texts only. Where near questions are traps by ``trap_odds`` (from
        1) times the odds they were fitted for, a threshold is that of so much less of the budget,
        at most `UNPROVEN`.
        """
        of, priors = own or {}, {**dict.fromkeys(more, DEFAULT_PRIOR), **PRIORS}

        def moved(prior: float, share: float) -> float:
            if pooled is not None and share and trap_odds > 1:
                return _among_traps(prior, share, pooled, trap_odds)
            return _moved(prior, share, pooled)

        return cls(
            priors={i: moved(prior, of.get(i, budget)) for i, prior in priors.items()},
            default=moved(DEFAULT_PRIOR, budget),
        )

    @classmethod
    def unproven(
        cls, budget: float, own: Mapping[str, float] | None = None, more: Iterable[str] = ()
    ) -> "Thresholds":
        """Return priors that serve only texts in which rules find no difference.

        All else waits until labels prove it; see `settled_from`.
        """
        of = own or {}
        names = (*PRIORS, *more)
        return cls(
            priors={name: settled_from(of.get(name, budget)) for name in names},
            default=settled_from(budget),
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


def _among_traps(prior: float, budget: float, pooled: PooledThresholds, odds: float) -> float:
    """Return the threshold of so much less of the budget.

    Beneath what was fitted, the distance to certainty shrinks with the square of the budget, up to
    `settled_from` it: shrinking in proportion served 6.6% wrong of LCQMC at a budget of 5%.
    """
    least, most = _moved(prior, budget, pooled), settled_from(budget)
    if least >= most:
        return least
    first, strict = pooled.knots[0]
    missing = budget / odds / first
    if missing >= 1:
        return max(_moved(prior, budget / odds, pooled), least)
    raised = shifted(1 - (1 - strict) * missing**2, distance(prior))
    return max(min(raised, most), least)


def _moved(prior: float, budget: float, pooled: PooledThresholds | None) -> float:
    if pooled is not None:
        return shifted(pooled.of(budget), distance(prior))
    return max(0.0, 1 - (1 - prior) * budget / PRIOR_BUDGET)
