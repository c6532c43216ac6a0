"""``/admin/experiments``: two thresholds of one intent, tried on halves of its traffic."""

import asyncio
from typing import Annotated, Any, Literal

from litestar import Request, delete, get, post
from litestar.params import FromPath
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.admin.actor import actor_of
from gateway.admin.intents import unreadable
from gateway.admin.query import read_query
from gateway.api.connection import parts_of, read_body
from gateway.errors import BackendUnavailable, BadRequest, Conflict, NotFound
from gateway.evidence import Experiment, PolicyUnreadable, State
from gateway.parts import Parts
from gateway.wire.validation import convert, decode_object
from semantic_layer import (
    IntentPolicy,
    StoreUnavailable,
    Tally,
    TrialVerdict,
    judge_trial,
    threshold_curve,
)

HTTP = Request[Any, Any, Any]
Share = Annotated[float, Meta(ge=0, le=1)]


class ExperimentBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What to try: threshold ``b`` against ``a``, or against what is in force.

    The wrong share at b must stay within ``budget``, else the intent's own.
    """

    intent: str
    b: Share
    a: Share | UnsetType = UNSET
    budget: Share | UnsetType = UNSET
    most: Annotated[int, Meta(ge=1, le=10_000_000)] = 10_000


class ArmView(Struct, frozen=True, kw_only=True):
    """One arm: its look-ups, hits and labels; bounds hold at every look."""

    threshold: float
    lookups: int
    hits: int
    hit_share: float | None
    hit_low: float
    hit_high: float
    labels: int
    wrong_share: float | None
    wrong_low: float
    wrong_high: float


class ExperimentView(Struct, frozen=True, kw_only=True):
    """An experiment and what it has come to."""

    id: str
    intent: str
    state: State
    verdict: TrialVerdict
    budget: float
    most: int
    started_at: float
    ended_at: float | None
    a: ArmView
    b: ArmView


class ExperimentList(Struct, frozen=True):
    """Experiments, newest first."""

    experiments: list[ExperimentView]


@get("/experiments")
async def list_experiments(request: HTTP) -> ExperimentList:
    """List all experiments with their results so far."""
    return await experiments_view(parts_of(request.scope))


async def experiments_view(parts: Parts) -> ExperimentList:
    """Return what ``GET /admin/experiments`` shows."""
    return ExperimentList([await _view(parts, one) for one in parts.evidence.experiments.all])


@post("/experiments", status_code=201)
async def start_experiment(request: HTTP) -> ExperimentView:
    """Try a threshold on half of an intent's traffic, everywhere within a second."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), ExperimentBody)
    known = parts.cache.thresholds.priors
    if body.intent not in known:
        raise BadRequest(f"intent: not one of {', '.join(known)}", param="intent")
    if parts.evidence.experiments.of_intent(body.intent) is not None:
        raise Conflict(f"intent: {body.intent} has a running experiment", param="intent")
    budget = parts.evidence.tuner.budgets.of(body.intent)
    experiment = Experiment(
        id="",
        intent=body.intent,
        a=None if body.a is UNSET else body.a,
        b=body.b,
        budget=budget if body.budget is UNSET else body.budget,
        most=body.most,
    )
    try:
        return await _view(parts, await parts.evidence.experiments.start(experiment))
    except StoreUnavailable as error:
        raise _unavailable(error) from error


@get("/experiments/{experiment_id:str}")
async def get_experiment(request: HTTP, experiment_id: FromPath[str]) -> ExperimentView:
    """Show one experiment."""
    parts = parts_of(request.scope)
    return await _view(parts, _found(parts, experiment_id))


@delete(["/experiments", "/experiments/{experiment_id:str}"], status_code=200)
async def end_experiment(request: HTTP) -> ExperimentView:
    """End an experiment; ``apply=a`` or ``apply=b`` sets that arm's threshold by hand."""
    parts = parts_of(request.scope)
    query = read_query(request, {"id", "apply"})
    experiment = _found(parts, request.path_params.get("experiment_id") or query.get("id"))
    if experiment.state != "running":
        raise Conflict(f"id: {experiment.id} has ended", param="id")
    applied = query.get("apply")
    if applied not in (None, "a", "b"):
        raise BadRequest("apply: expected a or b", param="apply")
    try:
        if applied is not None:
            await _apply(request, parts, experiment, "a" if applied == "a" else "b")
        state: State = "dropped" if applied is None else "applied"
        return await _view(parts, await parts.evidence.experiments.end(experiment, state))
    except StoreUnavailable as error:
        raise _unavailable(error) from error


async def _apply(
    request: HTTP, parts: Parts, experiment: Experiment, arm: Literal["a", "b"]
) -> None:
    threshold = experiment.a if arm == "a" else experiment.b
    if threshold is None:
        return  # what was in force stays so
    desk = parts.evidence.intents
    before = desk.policy(experiment.intent) or IntentPolicy()
    policy = IntentPolicy(
        mode="manual", threshold=threshold, budget=before.budget, ttl_s=before.ttl_s
    )
    actor = f"{actor_of(request.scope)}: experiment {experiment.id}"
    try:
        await desk.put(experiment.intent, policy, actor=actor)
    except PolicyUnreadable:
        raise unreadable(experiment.intent) from None


async def _view(parts: Parts, one: Experiment) -> ExperimentView:
    try:
        tallies = await parts.evidence.experiments.tallies(one.id)
    except StoreUnavailable as error:
        raise _unavailable(error) from error
    current = parts.cache.thresholds.of(one.intent)
    labels = [
        label for label in parts.evidence.labels.book.labels(one.intent)
        if one.started_at <= label.at <= (one.ended_at or label.at)
    ]  # fmt: skip
    a, b = await asyncio.gather(
        _arm(parts, current if one.a is None else one.a, tallies["a"], labels),
        _arm(parts, one.b, tallies["b"], labels),
    )
    return ExperimentView(
        id=one.id,
        intent=one.intent,
        state=one.state,
        verdict=judge_trial(
            tallies["a"],
            tallies["b"],
            wrong_low=b.wrong_low,
            wrong_high=b.wrong_high,
            budget=one.budget,
            most=one.most,
        ),
        budget=one.budget,
        most=one.most,
        started_at=one.started_at,
        ended_at=one.ended_at,
        a=a,
        b=b,
    )


async def _arm(parts: Parts, threshold: float, tally: Tally, labels: list[Any]) -> ArmView:
    scorer = parts.cache.scorer
    (point,) = await asyncio.to_thread(
        threshold_curve, labels, scorer=scorer, thresholds=[threshold]
    )
    low, high = tally.interval()
    return ArmView(
        threshold=threshold,
        lookups=tally.num,
        hits=tally.hits,
        hit_share=tally.share,
        hit_low=low,
        hit_high=high,
        labels=point.num,
        wrong_share=point.wrong_share if point.num else None,
        wrong_low=point.low,
        wrong_high=point.high,
    )


def _found(parts: Parts, experiment_id: str | None) -> Experiment:
    if experiment_id is None:
        raise BadRequest("id: name an experiment", param="id")
    found = parts.evidence.experiments.find(experiment_id)
    if found is None:
        raise NotFound(f"there is no experiment {experiment_id!r}", param="id")
    return found


def _unavailable(error: StoreUnavailable) -> BackendUnavailable:
    return BackendUnavailable(str(error), code="store_unavailable")
