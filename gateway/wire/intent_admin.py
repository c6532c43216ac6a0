"""Bodies of the intents' admin routes."""

import json
import math
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.errors import BadRequest
from gateway.wire.directives import Ttl
from gateway.wire.validation import convert, decode_object, wrong
from semantic_layer import IntentPolicy, Mode, ThresholdSource

Share = Annotated[float, Meta(ge=0, le=1)]


class PolicyBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An intent's whole policy; what is left out follows the settings.

    At least one is named. A ``threshold`` alone means mode ``manual``. ``ttl`` is in seconds.
    """

    mode: Mode | UnsetType = UNSET
    threshold: Share | UnsetType = UNSET
    budget: Share | UnsetType = UNSET
    ttl: Ttl | UnsetType = UNSET


class LabelsView(Struct, frozen=True, kw_only=True):
    """What labels say of serving an intent at its threshold.

    ``wrong_share`` (None without labels) is weighted, ``low`` and ``high`` are its bounds with 95%
    confidence. ``drifted``: labels sent the intent back from a threshold of its own.
    """

    count: int
    wrong: int
    wrong_share: float | None
    low: float
    high: float
    drifted: bool


class PolicyView(Struct, frozen=True, kw_only=True):
    """A policy as it was set; None follows the settings."""

    mode: Mode
    threshold: float | None
    budget: float | None
    ttl: float | None


class IntentView(Struct, frozen=True, kw_only=True):
    """One intent as it is in force; ``version`` is its ETag, ``policy`` what was set for it.

    ``source`` tells where ``threshold`` is from. ``prior`` is the one that holds while no label
    says anything. ``doubted`` is the stricter one that stands in its place where near-misses show
    more traps than it was fitted for; None while they don't. Both are shown whatever is in force.
    ``unreadable``: a policy is kept that another ``cache.encryption_key`` sealed, or another
    version wrote; the settings are in force meanwhile.
    """

    name: str
    mode: Mode
    threshold: float
    source: ThresholdSource
    prior: float
    doubted: float | None
    budget: float
    ttl: float
    version: int
    labels: LabelsView
    policy: PolicyView | None
    unreadable: bool


class IntentList(Struct, frozen=True):
    """Every intent."""

    intents: list[IntentView]


class CurvePointView(Struct, frozen=True, kw_only=True):
    """What serving at a threshold comes to; bounds with 95% confidence each."""

    threshold: float
    hit_share: float
    wrong_share: float
    low: float
    high: float
    labels: int


class CurveView(Struct, frozen=True):
    """An intent's curve from strict to loose; shares are of labelled traffic."""

    intent: str
    threshold: float
    budget: float
    labels: int
    points: list[CurvePointView]


class ReplayBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The threshold to try."""

    threshold: Share


class ChangeView(Struct, frozen=True, kw_only=True):
    """One change of a policy; None is the default."""

    intent: str
    at: float
    actor: str
    version: int
    before: PolicyView | None
    after: PolicyView | None


class ChangeList(Struct, frozen=True):
    """Changes, newest first."""

    changes: list[ChangeView]


def read_threshold(data: bytes) -> float:
    """Return the threshold that a body asks to try.

    Raises:
        BadRequest: it is missing or out of range.
    """
    return convert(_decode(data), ReplayBody).threshold


def read_policy(data: bytes) -> IntentPolicy:
    """Return the policy that a body asks for.

    Raises:
        BadRequest: there is no field; one is unknown, null or out of range, or does not go with
            the mode.
    """
    tree = _decode(data)
    if not tree:
        named = ", ".join(PolicyBody.__struct_fields__)
        raise BadRequest(
            f"the body names nothing: give at least one of {named}; what is left out returns to its"
            " default, and DELETE returns all of it"
        )
    body = convert(tree, PolicyBody)
    threshold = None if body.threshold is UNSET else body.threshold
    mode = body.mode
    if mode is UNSET:
        mode = "auto" if threshold is None else "manual"
    if mode == "manual" and threshold is None:
        raise wrong("threshold", "mode manual needs one, from 0 to 1")
    if mode != "manual" and threshold is not None:
        raise wrong("threshold", f"mode {mode} takes none; leave it out, or set mode manual")
    return IntentPolicy(
        mode=mode,
        threshold=threshold,
        budget=None if body.budget is UNSET else body.budget,
        ttl_s=None if body.ttl is UNSET else body.ttl,
    )


def view_of(policy: IntentPolicy | None) -> PolicyView | None:
    """Show a policy."""
    if policy is None:
        return None
    return PolicyView(
        mode=policy.mode, threshold=policy.threshold, budget=policy.budget, ttl=policy.ttl_s
    )


def _decode(data: bytes) -> dict[str, Any]:
    """Return the body; one whose only fault is a NaN or Infinity is blamed on its field."""
    try:
        return decode_object(data)
    except BadRequest:
        field = _field_that_is_no_number(data)
        if field is None:
            raise
        raise wrong(field, "expected a finite number") from None


def _field_that_is_no_number(data: bytes) -> str | None:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return None
    fields = tree.items() if isinstance(tree, dict) else []
    return next(
        (name for name, value in fields if isinstance(value, float) and not math.isfinite(value)),
        None,
    )
