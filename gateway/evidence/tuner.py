"""Puts the thresholds in force: the priors within the budgets, what was learnt, what was set."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from semantic_layer import IntentPolicies, Thresholds

Retune = Callable[[Thresholds, Mapping[str, float]], None]


class Tuner:
    """Tells ``retune`` the thresholds and times to live, whole, whenever one of them changed.

    ``budget`` (0..1) is that of the intents without one of their own; ``settings`` are the wishes
    that hold where operators set none.
    """

    def __init__(
        self, budget: float, retune: Retune, settings: IntentPolicies | None = None
    ) -> None:
        self._budget = budget
        self._retune = retune
        self._settings = settings or IntentPolicies()
        self._policies = self._settings
        self._calibrated: Mapping[str, float] = {}

    def budget_of(self, intent: str) -> float:
        """Return the wrong share among served hits that an intent is held to."""
        return self._policies.budgets.get(intent, self._budget)

    def use_policies(self, policies: IntentPolicies) -> None:
        """Take what operators set."""
        by_intent = {**self._settings.by_intent, **policies.by_intent}
        self._policies = IntentPolicies(by_intent)
        self._apply()

    def use_calibrated(self, calibrated: Mapping[str, float]) -> None:
        """Take the thresholds that labels have earned, by intent."""
        self._calibrated = calibrated
        self._apply()

    def _apply(self) -> None:
        policies = self._policies
        priors = Thresholds.within(self._budget, policies.budgets, self._settings.by_intent)
        thresholds = replace(
            priors, calibrated=self._calibrated, manual=policies.manual, off=policies.off
        )
        self._retune(thresholds, policies.ttls)
