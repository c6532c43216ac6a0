"""The state of every part, asked now: for health, statistics and the metrics' gauges."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from gateway.backends.base import PartHealth
from gateway.parts import Parts
from prefix_layer import EngineStats, PrefixLayerError

ANSWER_S = 2.0


@dataclass(frozen=True, slots=True)
class Health:
    """Each part's state; ``can_answer`` is False only when no request could be answered."""

    parts: dict[str, PartHealth]
    upstreams: dict[str, PartHealth] = field(default_factory=dict)

    @property
    def can_answer(self) -> bool:
        """Whether something generates, will soon, or the response store can still give hits."""
        generating = [self.parts["engine"], *self.upstreams.values()]
        return self.parts["redis"].ok or any(
            part.ok or part.state == "starting" for part in generating
        )

    @property
    def is_whole(self) -> bool:
        """Whether every part that is switched on works."""
        parts = [*self.parts.values(), *self.upstreams.values()]
        return all(part.ok or part.state == "off" for part in parts)


async def read_health(parts: Parts) -> Health:
    """Ask every part whether it can do its work."""
    stores, backends = await asyncio.gather(_stores(parts), _backends(parts))
    upstreams = {
        upstream.name: backends.get(upstream.name, PartHealth(False, "down", "no answer"))
        for upstream in parts.settings.upstreams
    }
    return Health({**stores, "engine": _engine(parts)}, upstreams)


async def read_engine(parts: Parts) -> EngineStats | None:
    """Return the engine's counters; None when there is no engine that answers."""
    if parts.engine is None or parts.engine.state != "ready":
        return None
    try:
        async with asyncio.timeout(ANSWER_S):
            return await parts.engine.stats()
    except (TimeoutError, PrefixLayerError):
        return None


async def refresh_metrics(parts: Parts) -> None:
    """Bring the gauges up to date."""
    metrics = parts.metrics
    entries, engine = await asyncio.gather(parts.cache.counts(), read_engine(parts))
    metrics.set_entries(entries)
    metrics.set_reembedding(parts.cache.reembedding.progress)
    metrics.set_engine(engine)
    metrics.set_thresholds(thresholds_of(parts))
    for intent, seen in parts.evidence.trainer.estimates.items():
        bounds = {"low": seen.low, "point": seen.wrong_share, "high": seen.high}
        metrics.set_wrong_hits(intent, bounds)
    for name, upstream in parts.upstreams.items():
        for replica in upstream.replicas:
            metrics.set_replica(name, replica.view)
    for part, is_open in parts.cache.open_breakers.items():
        metrics.set_breaker(part, is_open=is_open)


def thresholds_of(parts: Parts) -> dict[str, float]:
    """Return the threshold in force for each known intent."""
    thresholds = parts.cache.thresholds
    return {intent: thresholds.of(intent) for intent in thresholds.priors}


async def _stores(parts: Parts) -> dict[str, PartHealth]:
    found = await parts.cache.health()
    states = {
        name: PartHealth(state.ok, "ready" if state.ok else "down", state.detail)
        for name, state in found.items()
    }
    progress = parts.cache.reembedding.progress
    if states["embedder"].ok and progress.num_embedded and not progress.is_done:
        detail = f"embedding stored entries anew: {progress.num_embedded} so far"
        states["embedder"] = PartHealth(True, "ready", detail)
    if not parts.settings.semantic.enabled:
        states["embedder"] = PartHealth(False, "off", "semantic look-up is off")
    return states


async def _backends(parts: Parts) -> dict[str, PartHealth]:
    try:
        async with asyncio.timeout(ANSWER_S):
            return dict(await parts.backends.health())
    except TimeoutError:
        return {}


def _engine(parts: Parts) -> PartHealth:
    engine = parts.engine
    if engine is None:
        return PartHealth(False, "off", "no local model is set")
    match engine.state:
        case "ready":
            return PartHealth(True, "ready")
        case "starting" | "restarting":
            return PartHealth(False, "starting", engine.detail)
        case _:
            return PartHealth(False, "down", engine.detail)


def as_json(part: PartHealth) -> dict[str, Any]:
    """Return a part's state as plain values."""
    shown: dict[str, Any] = {"ok": part.ok, "state": part.state, "detail": part.detail}
    if part.each:
        shown["each"] = {name: as_json(inner) for name, inner in part.each.items()}
    return shown


def health_json(health: Health) -> dict[str, dict[str, Any]]:
    """Return all parts by name; upstreams are one part, named inside it."""
    listed = {name: as_json(part) for name, part in health.parts.items()}
    some_ok = any(part.ok for part in health.upstreams.values())
    state = "off" if not health.upstreams else "ready" if some_ok else "down"
    each = {name: as_json(part) for name, part in health.upstreams.items()}
    listed["upstreams"] = {"ok": some_ok, "state": state, "detail": "", "each": each}
    return listed
