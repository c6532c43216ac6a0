"""Reads all that the checks look at: the only file here that knows the parts."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from gateway.backends.local import LocalBackend
from gateway.doctor.counters import Counters
from gateway.doctor.snapshot import Engine, Intent, Snapshot, TenantUse
from gateway.doctor.traffic import Traffic, traffic_of
from gateway.errors import StrataError
from gateway.evidence import Glance
from gateway.parts import Parts
from gateway.readings import read_engine, read_health
from prefix_layer import PrefixLayerError
from semantic_layer import IntentPolicy, StoreError, threshold_curve

MOST_REQUESTS = 5_000
MOST_PROMPT_CHARS = 1 << 19
ANSWER_S = 5.0
_MOST_PREFIXES = 50
_PREFIX_DEPTH = 4

T = TypeVar("T")


async def gather(parts: Parts) -> Snapshot:
    """Ask every part at once; what is down is absent."""
    async with asyncio.TaskGroup() as group:
        health = group.create_task(read_health(parts))
        stores = group.create_task(parts.cache.health())
        entries = group.create_task(parts.cache.counts())
        room = group.create_task(parts.cache.room())
        requests = group.create_task(_or_none(parts.evidence.requests.newest(MOST_REQUESTS)))
        unread = group.create_task(_or_none(parts.evidence.unread()))
        engine = group.create_task(_engine(parts))
        tenants = group.create_task(_tenants(parts))
    stats = parts.stats.snapshot()
    by_intent = {name: seen["outcomes"] for name, seen in stats["by_intent"].items()}
    served = {name: counts.get("semantic", 0) for name, counts in by_intent.items()}
    return Snapshot(
        settings=parts.settings,
        health=health.result(),
        stores=stores.result(),
        breakers=parts.cache.open_breakers,
        entries=entries.result(),
        room=room.result(),
        unread=unread.result() or {},
        counters=Counters(parts.metrics.totals()),
        outcomes=stats["outcomes"],
        traffic=await asyncio.to_thread(_traffic, parts, requests.result() or [], engine.result()),
        engine=engine.result(),
        intents=await asyncio.to_thread(_intents, parts, served),
        trap_odds=parts.evidence.tuner.trap_odds,
        tenants=tenants.result(),
        replicas={
            name: [replica.view for replica in upstream.replicas]
            for name, upstream in parts.upstreams.items()
        },
    )


async def _or_none(answer: Awaitable[T]) -> T | None:
    """Return the answer; None where the part that gives it is down, or hangs."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await answer
    except (TimeoutError, StoreError, StrataError, PrefixLayerError):
        return None


def _traffic(parts: Parts, requests: list[Glance], engine: Engine | None) -> Traffic:
    prompts = engine.prompts if engine is not None else None
    return traffic_of(
        requests,
        ttl_of=lambda intent: _ttl_s(parts, intent),
        now=time.time(),
        local_model=engine.model if engine is not None else None,
        most_prompts=prompts.requests if prompts is not None else 0,
    )


def _ttl_s(parts: Parts, intent: str | None) -> float:
    policy = parts.evidence.intents.policy(intent or "")
    own_s = None if policy is None else policy.ttl_s
    return parts.cache.policy.ttl_of(intent) if own_s is None else own_s


async def _engine(parts: Parts) -> Engine | None:
    local, client = parts.local, parts.engine
    if local is None or client is None:
        return None
    stats, prompts, prefixes = await asyncio.gather(
        read_engine(parts),
        _or_none(local.prefix.volatile(_names(parts), None, MOST_PROMPT_CHARS)),
        _or_none(local.prefix.tree(limit=_MOST_PREFIXES, depth=_PREFIX_DEPTH, names=_names(parts))),
    )
    return Engine(
        model=_model(local),
        stats=stats,
        context_tokens=client.ready.model_context_length if client.ready is not None else 0,
        restarts=client.num_restarts,
        detail=client.detail,
        prompts=prompts,
        prefixes=() if prefixes is None else prefixes.prefixes,
    )


def _model(local: LocalBackend) -> str:
    (model,) = local.models()
    return model.model_id


def _names(parts: Parts) -> dict[bytes, str]:
    return {tenant.salt: tenant.name for tenant in parts.key_ring.tenants()}


def _intents(parts: Parts, served: dict[str, int]) -> list[Intent]:
    return [_intent(parts, name, served.get(name, 0)) for name in parts.cache.thresholds.priors]


def _intent(parts: Parts, name: str, served: int) -> Intent:
    evidence, thresholds = parts.evidence, parts.cache.thresholds
    found = evidence.tuner.calibration.intents.get(name)
    budget = evidence.tuner.budgets.of(name)
    policy = evidence.intents.policy(name) or IntentPolicy()
    shown = Intent(
        name=name, threshold=thresholds.of(name), budget=budget, mode=policy.mode, served=served
    )
    if found is None or not found.num_labels:
        return shown
    return Intent(
        name=name,
        threshold=shown.threshold,
        budget=budget,
        mode=policy.mode,
        served=served,
        labels=found.num_labels,
        wrong=found.wrong,
        low=found.lower,
        high=found.upper,
        drifted=found.drifted,
        safe=_safe(parts, name, budget) if found.upper > budget else None,
    )


def _safe(parts: Parts, name: str, budget: float) -> float | None:
    """Return the lowest threshold at which labels prove the budget kept; None where none does."""
    labels = parts.evidence.labels.book.labels(name)
    points = threshold_curve(labels, scorer=parts.cache.scorer)
    return min((point.threshold for point in points if point.high <= budget), default=None)


async def _tenants(parts: Parts) -> list[TenantUse]:
    uses = []
    for tenant in parts.key_ring.tenants():
        if tenant.rules.are_limits:
            limits = await parts.quotas.usage(tenant)
            named = {
                name: (float(seen["limit"] or 0), float(seen["used"] or 0))
                for name, seen in limits.items()
            }
            uses.append(TenantUse(tenant.name, named))
    return uses
