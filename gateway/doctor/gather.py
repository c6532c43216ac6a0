"""Reads all that the checks look at: the only file here that knows the parts."""

import asyncio

from gateway.doctor.counters import Counters
from gateway.doctor.snapshot import Snapshot
from gateway.parts import Parts
from gateway.readings import read_health


async def gather(parts: Parts) -> Snapshot:
    """Ask every part at once; what is down is absent."""
    health, stores, entries = await asyncio.gather(
        read_health(parts), parts.cache.health(), parts.cache.counts()
    )
    return Snapshot(
        settings=parts.settings,
        health=health,
        stores=stores,
        breakers=parts.cache.open_breakers,
        entries=entries,
        counters=Counters(parts.metrics.totals()),
        outcomes=parts.stats.snapshot()["outcomes"],
    )
