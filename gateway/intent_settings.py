"""Settings of intents: those of users, told by examples, and changes to the seed ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from gateway.settings_tree import SettingsError
from semantic_layer import SEED_RULES, IntentPolicies, IntentPolicy, IntentRule

IntentName = Annotated[
    str,
    Meta(pattern=r"^[a-z][a-z0-9_-]{0,63}$", description="small letters, digits, _ and -"),
]
Text = Annotated[str, Meta(min_length=1, max_length=2000)]


@dataclass(frozen=True, slots=True)
class IntentSettings:
    """One intent. Without ``examples`` a new one is only found where a request names it.

    What is left out follows the seed intent of this name, else the defaults. Without ``cacheable``
    the caches take no part in its requests; ``mode = "off"`` leaves exact repeats.
    """

    name: IntentName
    examples: list[Text] = field(default_factory=list)
    ttl_s: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    budget: Annotated[float, Meta(ge=0, le=1)] | None = None
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    mode: Literal["auto", "manual", "off"] | None = None
    cacheable: bool = True


def check_intents(intents: Sequence[IntentSettings]) -> None:
    """Raise unless every intent is named once and has the threshold its mode needs.

    Raises:
        SettingsError: names the key.
    """
    seen: set[str] = set()
    for at, intent in enumerate(intents):
        where = f"semantic.intents[{at}]"
        if intent.name in seen:
            raise SettingsError(f"{where}.name: {intent.name!r} is there already")
        if intent.mode == "manual" and intent.threshold is None:
            raise SettingsError(f"{where}.threshold: the mode manual needs one")
        seen.add(intent.name)


def rules_of(intents: Sequence[IntentSettings]) -> Mapping[str, IntentRule]:
    """Return what every intent means for the caches."""
    rules = dict(SEED_RULES)
    for intent in intents:
        seed = SEED_RULES.get(intent.name, IntentRule())
        rules[intent.name] = IntentRule(
            ttl_s=seed.ttl_s if intent.ttl_s is None else intent.ttl_s,
            semantic=seed.semantic if intent.mode is None else intent.mode != "off",
            in_chats=seed.in_chats and intent.mode is None,
            cacheable=intent.cacheable,
            may_be_stale=seed.may_be_stale,
        )
    return rules


def policies_of(intents: Sequence[IntentSettings]) -> IntentPolicies:
    """Return the wishes that hold where operators set none; a threshold alone is manual."""
    return IntentPolicies(
        {
            intent.name: IntentPolicy(
                mode=intent.mode or ("auto" if intent.threshold is None else "manual"),
                threshold=intent.threshold,
                budget=intent.budget,
            )
            for intent in intents
        }
    )


def examples_of(intents: Sequence[IntentSettings]) -> Mapping[str, Sequence[str]]:
    """Return the examples of the intents that have any."""
    return {intent.name: intent.examples for intent in intents if intent.examples}
