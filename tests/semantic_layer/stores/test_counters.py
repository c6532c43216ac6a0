"""Counters: one contract, in memory and in a real Valkey."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from semantic_layer import Counters, MemoryCounters, StoreUnavailable, Valkey, Window, open_counters


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["memory", "redis"])
async def counters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Counters]:
    if request.param == "memory":
        yield MemoryCounters()
        return
    valkey = await Valkey.start(tmp_path_factory.mktemp("counters"))
    opened = open_counters(valkey.url, connect_timeout_s=2, command_timeout_s=2)
    yield opened
    await opened.close()
    await valkey.stop()


def window(
    name: str, *, slot: int = 7, carry: float = 0.0, cost: int = 1, limit: int | None = 3
) -> Window:
    return Window(name, slot, carry, cost, limit, ttl_s=120)


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_cost_is_added_until_the_limit_is_reached(counters: Counters) -> None:
    """Three of three fit, the fourth does not and adds nothing."""
    asked = window("plain")
    verdicts = [await counters.admit("acme", [asked]) for _ in range(5)]
    assert [verdict.refused for verdict in verdicts] == [None, None, None, 0, 0]
    assert [verdict.counted[0].current for verdict in verdicts] == [0, 1, 2, 3, 3]


async def test_nothing_is_added_when_one_of_several_windows_is_full(counters: Counters) -> None:
    """A refusal leaves every window as it was and names the full one."""
    full, free = window("full", limit=0), window("free")
    assert (await counters.admit("acme", [free, full])).refused == 1
    assert (await counters.admit("acme", [free])).counted[0].current == 0


async def test_slot_before_weighs_by_its_carry(counters: Counters) -> None:
    """Of two in the last slot one still counts at half its weight."""
    for _ in range(2):
        await counters.admit("acme", [window("slides", slot=1)])
    half = window("slides", slot=2, carry=0.5, limit=2)
    assert (await counters.admit("acme", [half])).refused is None
    assert (await counters.admit("acme", [half])).refused == 0


async def test_free_look_is_refused_when_the_window_is_used_up(counters: Counters) -> None:
    """A cost of zero asks whether anything is left."""
    spent = window("tokens", cost=500, limit=None)
    await counters.admit("acme", [spent])
    look = window("tokens", cost=0, limit=500)
    assert (await counters.admit("acme", [look])).refused == 0
    assert (await counters.admit("other", [look])).refused is None


async def test_limit_holds_when_many_ask_at_once(counters: Counters) -> None:
    """Admission is atomic."""
    asked = window("rush", limit=10)
    verdicts = await asyncio.gather(*(counters.admit("acme", [asked]) for _ in range(40)))
    assert sum(verdict.refused is None for verdict in verdicts) == 10


async def test_outage_is_named_when_redis_is_down(tmp_path: Path) -> None:
    """The caller decides what a lost count means."""
    counters = open_counters(
        f"unix://{tmp_path}/none.sock", connect_timeout_s=0.2, command_timeout_s=0.2
    )
    with pytest.raises(StoreUnavailable):
        await counters.admit("acme", [window("any")])
    await counters.close()
