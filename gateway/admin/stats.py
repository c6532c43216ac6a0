"""``/admin/stats`` and ``/admin/prefix/stats``: the traffic and the KV cache in numbers."""

import asyncio
from typing import Annotated, Any

from litestar import Request, get
from msgspec import Meta, Struct

from gateway.admin.query import read_query
from gateway.api.connection import parts_of
from gateway.evidence import ALL
from gateway.parts import Parts
from gateway.readings import health_json, read_engine, read_health, thresholds_of
from gateway.series import MAX_MINUTES, MINUTE_S, Span
from gateway.wire.validation import convert
from prefix_layer import EngineStats

HTTP = Request[Any, Any, Any]


class SeriesQuery(Struct, frozen=True):
    """How many of the last minutes, and how many of them make one span."""

    minutes: Annotated[int, Meta(ge=1, le=MAX_MINUTES)] = 60
    step: Annotated[int, Meta(ge=1, le=MAX_MINUTES)] = 1


class Series(Struct, frozen=True):
    """This gateway's traffic over time."""

    step_s: int
    spans: list[Span]


@get("/stats")
async def traffic(request: HTTP) -> dict[str, Any]:
    """Show hit rates, latencies, tokens and money saved, entries and the state of the parts."""
    return await traffic_view(parts_of(request.scope))


async def traffic_view(parts: Parts) -> dict[str, Any]:
    """Return what ``GET /admin/stats`` shows."""
    entries, health = await asyncio.gather(parts.cache.counts(), read_health(parts))
    return {
        **parts.stats.snapshot(),
        "money": parts.ledger.snapshot(),
        "entries": entries,
        "thresholds": thresholds_of(parts),
        "near_misses": {"trap_odds": parts.evidence.tuner.trap_odds},
        "wrong_hits": _wrong_hits(parts),
        "parts": health_json(health),
    }


@get("/stats/series")
async def series(request: HTTP) -> Series:
    """Show requests and tokens saved by the minute, oldest first; ``step`` minutes to a span."""
    query = convert(read_query(request, {"minutes", "step"}), SeriesQuery, strict=False)
    return series_view(parts_of(request.scope), query.minutes, query.step)


def series_view(parts: Parts, minutes: int, step: int) -> Series:
    """Return what ``GET /admin/stats/series`` shows."""
    return Series(step * MINUTE_S, parts.series.spans(minutes, step))


@get("/prefix/stats")
async def prefix(request: HTTP) -> dict[str, Any]:
    """Show blocks by state, tokens by source, evictions, memory and time to first token."""
    return await prefix_view(parts_of(request.scope))


async def prefix_view(parts: Parts) -> dict[str, Any]:
    """Return what ``GET /admin/prefix/stats`` shows."""
    stats = await read_engine(parts)
    seen = {"engine": _engine(parts), "ttft_s": parts.stats.prefix_ttft()}
    return seen if stats is None else {**seen, **_counters(stats)}


def _wrong_hits(parts: Parts) -> dict[str, Any]:
    """Show the wrong share of semantic hits, as labels tell it; bounds with 95% confidence each.

    ``of_all`` are the same as shares of all requests since the start, answered from the cache or
    not.
    """
    hit_share = parts.stats.semantic_share
    shown: dict[str, dict[str, Any]] = {}
    for intent, seen in parts.evidence.trainer.estimates.items():
        of_hits = {"share": seen.wrong_share, "low": seen.low, "high": seen.high}
        shown[intent] = {"labels": seen.num, **of_hits}
        if intent == ALL:
            shown[intent]["of_all"] = {name: v * hit_share for name, v in of_hits.items()}
    return shown


def _engine(parts: Parts) -> dict[str, Any]:
    engine = parts.engine
    if engine is None:
        return {"state": "off", "detail": "no local model is set"}
    return {"state": engine.state, "detail": engine.detail, "restarts": engine.num_restarts}


def _counters(stats: EngineStats) -> dict[str, Any]:
    tokens = sum(stats.tokens_by_source.values())
    reused = tokens - stats.tokens_by_source.get("computed", 0)
    return {
        "block_size": stats.block_size,
        "num_blocks": stats.num_blocks,
        "blocks": stats.blocks_by_state,
        "pinned_blocks": stats.num_pinned_blocks,
        "bytes": stats.bytes_by_tier,
        "tokens": stats.tokens_by_source,
        "token_hit_rate": reused / tokens if tokens else None,
        "evictions": stats.evictions_by_tier,
        "failures": stats.failures_by_tier,
        "broken_files": stats.broken_by_tier,
        "waiting": stats.num_waiting,
        "running": stats.num_running,
        "batch_tokens": stats.batch_tokens,
    }
