"""What an operator sets for one intent while gateways run. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

Mode = Literal["auto", "manual", "off"]


class IntentPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The wishes for one intent; None leaves a value to the settings.

    In mode ``auto`` the threshold is learnt, in ``manual`` it is ``threshold``, in ``off`` the
    intent is answered by exact repeats only. ``budget`` (0..1) bounds the wrong share among served
    hits; ``ttl_s`` is how long an answer is kept.
    """

    mode: Mode = "auto"
    threshold: float | None = None
    budget: float | None = None
    ttl_s: float | None = None


@dataclass(frozen=True, slots=True)
class IntentPolicies:
    """The wishes for all intents that have any."""

    by_intent: Mapping[str, IntentPolicy] = field(default_factory=dict)

    @property
    def manual(self) -> dict[str, float]:
        """The thresholds that are set by hand."""
        return {
            intent: policy.threshold
            for intent, policy in self.by_intent.items()
            if policy.mode == "manual" and policy.threshold is not None
        }

    @property
    def off(self) -> frozenset[str]:
        """The intents that are never served by likeness."""
        return frozenset(i for i, policy in self.by_intent.items() if policy.mode == "off")

    @property
    def budgets(self) -> dict[str, float]:
        """The budgets that intents have of their own."""
        return {i: p.budget for i, p in self.by_intent.items() if p.budget is not None}

    @property
    def ttls(self) -> dict[str, float]:
        """The times to live that intents have of their own, in seconds."""
        return {i: p.ttl_s for i, p in self.by_intent.items() if p.ttl_s is not None}
