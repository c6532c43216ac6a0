"""Puts the thresholds in force: the priors within the budgets, what was learnt, what was set."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from semantic_layer import (
    Budgets,
    Calibration,
    IntentPolicies,
    PooledThresholds,
    Thresholds,
    Trial,
)

Retune = Callable[[Thresholds, Mapping[str, float]], None]


class Tuner:
    """Tells ``retune`` the thresholds and times to live, whole, whenever one of them changed.

    ``budget`` (0..1) is that of the intents without one of their own; ``settings`` are the wishes
    that hold where operators set none. ``pooled`` gives the priors of the scores in use, where they
    were fitted. ``num_changes`` counts what operators changed.
    """

    def __init__(
        self,
        budget: float,
        retune: Retune,
        settings: IntentPolicies | None = None,
        pooled: PooledThresholds | None = None,
    ) -> None:
        self._budget = budget
        self._retune = retune
        self._pooled = pooled
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

    @property
    def base(self) -> Thresholds:
        """The thresholds without anything learnt."""
        policies = self._policies
        priors = Thresholds.within(
            self._budget, policies.budgets, self._settings.by_intent, self._pooled
        )
        return replace(priors, manual=policies.manual, off=policies.off)

    def use_settings(self, budget: float, settings: IntentPolicies) -> None:
        """Take another budget and other wishes; what operators set comes before them still."""
        self._budget, self._settings = budget, settings
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

    def use_calibration(self, calibration: Calibration) -> None:
        """Take what labels have earned."""
        self.calibration = calibration
        self._apply()

    def _apply(self) -> None:
        learnt = self.calibration
        thresholds = replace(
            self.base,
            calibrated=learnt.thresholds,
            entries=learnt.entries,
            trials=self._trials,
        )
        self._retune(thresholds, self._policies.ttls)
