"""``/admin/intents``: what each intent is held to, changed while all gateways run."""

import asyncio
from typing import Annotated, Any

from litestar import Request, Response, delete, get, post, put
from litestar.params import FromPath
from msgspec import Meta, Struct

from gateway.admin.actor import actor_of
from gateway.admin.query import read_query, take_flag
from gateway.api.connection import headers_of, parts_of, read_body
from gateway.errors import BackendUnavailable, BadRequest, Conflict, NotFound, PreconditionFailed
from gateway.evidence import Playback, PolicyUnreadable, VersionConflict
from gateway.parts import Parts
from gateway.wire.intent_admin import (
    ChangeList,
    ChangeView,
    CurvePointView,
    CurveView,
    IntentList,
    IntentView,
    LabelsView,
    read_policy,
    read_threshold,
    view_of,
)
from gateway.wire.validation import convert
from semantic_layer import (
    IntentCalibration,
    IntentPolicy,
    StoreUnavailable,
    ThresholdSource,
    threshold_curve,
)

HTTP = Request[Any, Any, Any]
_REPLACE = "replace_unreadable"


class HistoryQuery(Struct, frozen=True):
    """How many changes."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50


@get("/intents")
async def list_intents(request: HTTP) -> IntentList:
    """List every intent with its threshold, budget, time to live and mode."""
    return intents_view(parts_of(request.scope))


@get("/intents/{name:str}")
async def get_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Show one intent."""
    parts = _knowing(request, name)
    return _answer(parts, name)


@put("/intents/{name:str}")
async def put_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Replace an intent's policy, everywhere within a second; ``If-Match`` guards a change.

    One that cannot be read is replaced with ``replace_unreadable=1`` only.
    """
    parts = _knowing(request, name)
    policy = read_policy(await read_body(request.scope, request.receive))
    await _set(request, parts, name, policy)
    return _answer(parts, name)


@delete("/intents/{name:str}", status_code=200)
async def delete_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Return an intent to the default; ``If-Match`` and ``replace_unreadable`` as with PUT."""
    parts = _knowing(request, name)
    await _set(request, parts, name, None)
    return _answer(parts, name)


@get("/intents/{name:str}/history")
async def intent_history(request: HTTP, name: FromPath[str]) -> ChangeList:
    """List the changes of an intent's policy, newest first."""
    parts = _knowing(request, name)
    query = convert(read_query(request, {"limit"}), HistoryQuery, strict=False)
    return await history_view(parts, name, query.limit)


@get("/intents/{name:str}/curve")
async def get_curve(request: HTTP, name: FromPath[str]) -> CurveView:
    """Show what each threshold would come to, from labelled traffic."""
    parts = _knowing(request, name)
    return await curve_view(parts, name)


@post("/intents/{name:str}/replay", status_code=200)
async def replay_intent(request: HTTP, name: FromPath[str]) -> Playback:
    """Tell what another threshold would have changed on recorded traffic; nothing is changed."""
    parts = _knowing(request, name)
    threshold = read_threshold(await read_body(request.scope, request.receive))
    return await replay_view(parts, name, threshold)


async def history_view(parts: Parts, name: str, limit: int) -> ChangeList:
    """Show the latest changes of an intent's policy."""
    try:
        changes = await parts.evidence.intents.changes(name, limit)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return ChangeList(
        [
            ChangeView(
                intent=change.intent,
                at=change.at,
                actor=change.actor,
                version=change.version,
                before=view_of(change.before),
                after=view_of(change.after),
            )
            for change in changes
        ]
    )


async def curve_view(parts: Parts, name: str) -> CurveView:
    """Show what each threshold would come to."""
    labels = parts.evidence.labels.book.labels(name)
    points = await asyncio.to_thread(threshold_curve, labels, scorer=parts.cache.scorer)
    return CurveView(
        name,
        parts.cache.thresholds.of(name),
        parts.evidence.tuner.budgets.of(name),
        max((point.num for point in points), default=0),
        [
            CurvePointView(
                threshold=point.threshold,
                hit_share=point.served_share,
                wrong_share=point.wrong_share,
                low=point.low,
                high=point.high,
                labels=point.num,
            )
            for point in points
        ],
    )


async def replay_view(parts: Parts, name: str, threshold: float) -> Playback:
    """Show what another threshold would have changed on recorded traffic."""
    try:
        return await parts.evidence.play_back(name, threshold)
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error


def intents_view(parts: Parts) -> IntentList:
    """Show every intent."""
    return IntentList([intent_view(parts, name) for name in parts.cache.thresholds.priors])


def intent_view(parts: Parts, name: str) -> IntentView:
    """Show an intent as it is in force."""
    evidence, thresholds = parts.evidence, parts.cache.thresholds
    policy = evidence.intents.policy(name) or IntentPolicy()
    found = evidence.tuner.calibration.intents.get(name)
    return IntentView(
        name=name,
        mode=policy.mode,
        threshold=thresholds.of(name),
        source=_source(parts, name),
        prior=evidence.tuner.base().prior(name),
        doubted=evidence.tuner.doubted(name),
        budget=evidence.tuner.budgets.of(name),
        ttl=policy.ttl_s if policy.ttl_s is not None else parts.cache.policy.ttl_of(name),
        version=evidence.intents.version(name),
        policy=view_of(evidence.intents.policy(name)),
        labels=_labels_view(found),
        unreadable=evidence.intents.is_unreadable(name),
    )


def _source(parts: Parts, name: str) -> ThresholdSource:
    """Tell where the threshold in force is from."""
    tuner = parts.evidence.tuner
    if name in parts.cache.thresholds.manual:
        return "manual"
    found = tuner.calibration.intents.get(name)
    if found is None or found.source in {"manual", "prior"}:  # manual: until labels are read again
        return "prior" if tuner.doubted(name) is None else "doubted"
    return found.source


def _labels_view(found: IntentCalibration | None) -> LabelsView:
    if found is None:
        return LabelsView(count=0, wrong=0, wrong_share=None, low=0.0, high=1.0, drifted=False)
    return LabelsView(
        count=found.num_labels,
        wrong=found.wrong,
        wrong_share=found.point,
        low=found.lower,
        high=found.upper,
        drifted=found.drifted,
    )


def _knowing(request: HTTP, name: str) -> Parts:
    parts = parts_of(request.scope)
    known = parts.cache.thresholds.priors
    if name not in known:
        raise NotFound(f"there is no intent {name!r}, only {', '.join(known)}", param="name")
    return parts


def _answer(parts: Parts, name: str) -> Response[IntentView]:
    view = intent_view(parts, name)
    return Response(view, headers={"ETag": f'"{view.version}"'})


async def _set(request: HTTP, parts: Parts, name: str, policy: IntentPolicy | None) -> None:
    expected = _expected(headers_of(request.scope).get("if-match"))
    may_lose = take_flag(read_query(request, {_REPLACE}), _REPLACE)
    actor, desk = actor_of(request.scope), parts.evidence.intents
    try:
        await desk.put(name, policy, actor=actor, expected=expected, may_lose=may_lose)
    except PolicyUnreadable:
        raise unreadable(name) from None
    except VersionConflict:
        raise PreconditionFailed(
            f"the intent {name!r} was changed meanwhile; read it again", param="if-match"
        ) from None
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error


def unreadable(name: str) -> Conflict:
    """Tell that a policy would be lost, and how to keep it or let it go."""
    return Conflict(
        f"the policy of {name!r} cannot be read: another cache.encryption_key sealed it, or "
        f"another version wrote it; set that key, or replace it with {_REPLACE}=1",
        param="name",
        code="policy_unreadable",
    )


def _expected(if_match: str | None) -> int | None:
    """Return the version that ``If-Match`` names; None takes any."""
    if if_match is None or if_match.strip() == "*":
        return None
    version = if_match.strip().removeprefix("W/").strip('"')
    if not version.isdecimal():
        raise BadRequest(f"if-match: {if_match!r} is no ETag of ours", param="if-match")
    return int(version)
