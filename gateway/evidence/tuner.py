"""Puts the thresholds in force: the priors within the budgets, what was learnt, what was set."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from semantic_layer import (
    Budgets,
    Calibration,
    IntentPolicies,
    PooledThresholds,
    Start,
    Thresholds,
    Trial,
)

Retune = Callable[[Thresholds, Mapping[str, float]], None]


class Tuner:
    """Tells ``retune`` the thresholds and times to live, whole, whenever one of them changed.

    ``budget`` (0..1) is that of the intents without one of their own; ``settings`` are the wishes
    that hold where operators set none. ``pooled`` gives the priors of the scores in use, where they
    were fitted, and ``start`` says whether they hold until labels prove others, or only what rules
    find no difference in is served until then. ``trap_odds`` (from 1) is how many times likelier to
    be wrong near-misses are than was fitted for. ``num_changes`` counts what operators changed.
    """

    def __init__(
        self,
        budget: float,
        retune: Retune,
        settings: IntentPolicies | None = None,
        pooled: PooledThresholds | None = None,
        start: Start = "fitted",
    ) -> None:
        self._budget = budget
        self._start = start
        self._retune = retune
        self.pooled = pooled
        self.trap_odds = 1.0
        self._settings = settings or IntentPolicies()
        self._policies = self._settings
        self._set = IntentPolicies()
        self._trials: Mapping[str, Trial] = {}
        self.calibration = Calibration({})
        self.num_changes = 0

    @property
    def budgets(self) -> Budgets:
        """The wrong share among served hits that each intent is held to."""
        return Budgets(self._budget, self._policies.budgets)

    def base(self, trap_odds: float = 1.0) -> Thresholds:
        """Return the thresholds of no labels but those of near-misses, whose traps are such."""
        policies, names = self._policies, self._settings.by_intent
        if self._start == "proven":
            priors = Thresholds.unproven(self._budget, policies.budgets, names)
        else:
            priors = Thresholds.within(
                self._budget, policies.budgets, names, self.pooled, trap_odds
            )
        return replace(priors, manual=policies.manual, off=policies.off)

    def doubted(self, intent: str) -> float | None:
        """Return what near-misses have raised the prior to; None where they have not."""
        raised = self.base(self.trap_odds).prior(intent)
        return raised if raised > self.base().prior(intent) else None

    def use_settings(self, budget: float, settings: IntentPolicies, start: Start) -> None:
        """Take another budget and other wishes; what operators set comes before them still."""
        self._budget, self._settings, self._start = budget, settings, start
        self.use_policies(self._set)

    def use_policies(self, policies: IntentPolicies) -> None:
        """Take what operators set."""
        self._set = policies
        by_intent = {**self._settings.by_intent, **policies.by_intent}
        self._policies = IntentPolicies(by_intent)
        self.num_changes += 1
        self._apply()

    def use_trials(self, trials: Mapping[str, Trial]) -> None:
        """Take the trials that run, by intent."""
        self._trials = trials
        self._apply()

    def use_calibration(self, calibration: Calibration, trap_odds: float = 1.0) -> None:
        """Take what labels have earned, and what near-misses say of the priors."""
        self.calibration, self.trap_odds = calibration, trap_odds
        self._apply()

    def _apply(self) -> None:
        learnt = self.calibration
        thresholds = replace(
            self.base(self.trap_odds),
            calibrated=learnt.thresholds,
            entries=learnt.entries,
            trials=self._trials,
        )
        self._retune(thresholds, self._policies.ttls)
