"""``/admin/intents``: what each intent is held to, changed while all gateways run."""

from typing import Annotated, Any, Literal

from litestar import Request, Response, delete, get, put
from litestar.params import FromPath
from msgspec import Meta, Struct

from gateway.admin.query import read_query
from gateway.api.connection import headers_of, parts_of, read_body
from gateway.errors import BackendUnavailable, BadRequest, NotFound, PreconditionFailed
from gateway.evidence import VersionConflict
from gateway.parts import Parts
from gateway.wire.intent_admin import (
    ChangeList,
    ChangeView,
    IntentList,
    IntentView,
    read_policy,
    view_of,
)
from gateway.wire.validation import convert
from semantic_layer import IntentPolicy, StoreUnavailable

HTTP = Request[Any, Any, Any]
ACTOR = "x-strata-actor"
MAX_ACTOR = 64


class HistoryQuery(Struct, frozen=True):
    """How many changes."""

    limit: Annotated[int, Meta(ge=1, le=500)] = 50


@get("/intents")
async def list_intents(request: HTTP) -> IntentList:
    """List every intent with its threshold, budget, time to live and mode."""
    parts = parts_of(request.scope)
    return IntentList([intent_view(parts, name) for name in parts.cache.thresholds.priors])


@get("/intents/{name:str}")
async def get_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Show one intent."""
    parts = _knowing(request, name)
    return _answer(parts, name)


@put("/intents/{name:str}")
async def put_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Replace an intent's policy, everywhere within a second; ``If-Match`` guards a change."""
    parts = _knowing(request, name)
    policy = read_policy(await read_body(request.scope, request.receive))
    await _set(request, parts, name, policy)
    return _answer(parts, name)


@delete("/intents/{name:str}", status_code=200)
async def delete_intent(request: HTTP, name: FromPath[str]) -> Response[IntentView]:
    """Return an intent to the default."""
    parts = _knowing(request, name)
    await _set(request, parts, name, None)
    return _answer(parts, name)


@get("/intents/{name:str}/history")
async def intent_history(request: HTTP, name: FromPath[str]) -> ChangeList:
    """List the changes of an intent's policy, newest first."""
    parts = _knowing(request, name)
    query = convert(read_query(request, {"limit"}), HistoryQuery, strict=False)
    try:
        changes = await parts.evidence.intents.changes(name, query.limit)
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


def intent_view(parts: Parts, name: str) -> IntentView:
    """Show an intent as it is in force."""
    evidence, thresholds = parts.evidence, parts.cache.thresholds
    policy = evidence.intents.policy(name) or IntentPolicy()
    source: Literal["manual", "calibrated", "prior"] = "prior"
    if name in thresholds.manual:
        source = "manual"
    elif name in thresholds.calibrated:
        source = "calibrated"
    return IntentView(
        name=name,
        mode=policy.mode,
        threshold=thresholds.of(name),
        source=source,
        prior=thresholds.priors.get(name, thresholds.default),
        budget=evidence.tuner.budget_of(name),
        ttl=policy.ttl_s if policy.ttl_s is not None else parts.cache.policy.ttl_of(name),
        version=evidence.intents.version(name),
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
    headers = headers_of(request.scope)
    expected = _expected(headers.get("if-match"))
    desk = parts.evidence.intents
    try:
        await desk.put(name, policy, actor=_actor(headers), expected=expected)
    except VersionConflict:
        raise PreconditionFailed(
            f"the intent {name!r} was changed meanwhile; read it again", param="if-match"
        ) from None
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error


def _expected(if_match: str | None) -> int | None:
    """Return the version that ``If-Match`` names; None takes any."""
    if if_match is None or if_match.strip() == "*":
        return None
    version = if_match.strip().removeprefix("W/").strip('"')
    if not version.isdecimal():
        raise BadRequest(f"if-match: {if_match!r} is no ETag of ours", param="if-match")
    return int(version)


def _actor(headers: dict[str, str]) -> str:
    """Return who makes a change, as they say themselves."""
    actor = headers.get(ACTOR, "admin").strip()
    if not (actor.isprintable() and 0 < len(actor) <= MAX_ACTOR):
        raise BadRequest(f"{ACTOR}: expected 1 to {MAX_ACTOR} characters", param=ACTOR)
    return actor
