"""Upstreams that are exchanged while the gateway runs: all of them, or none."""

import asyncio
from dataclasses import replace

import pytest

from gateway.settings import Settings
from gateway.upstream_pool import UpstreamPool
from gateway.upstream_settings import UpstreamSettings
from tests.fakes.upstream import FakeUpstream


def watchers() -> set["asyncio.Task[object]"]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[operator]


async def test_all_is_as_before_when_a_later_upstream_cannot_be_built() -> None:
    """No watcher and no connection of the ones built before it is left; the old ones serve on."""
    with FakeUpstream() as fake:
        first = UpstreamSettings("first", fake.base_url, models=["a"])
        other = replace(first, name="other")
        broken = replace(first, name="broken", proxy="nonsense://nowhere")
        pool = UpstreamPool(lambda _name, _status: None)
        await pool.use(Settings(upstreams=[first]))
        before, running = pool.upstreams, watchers()
        with pytest.raises(ValueError, match="nonsense"):
            await pool.use(Settings(upstreams=[first, other, broken]))
        assert pool.upstreams == before
        assert watchers() == running
        await pool.use(Settings(upstreams=[first, other]))
        assert list(pool.upstreams) == ["first", "other"]
        assert pool.upstreams["first"] is before["first"]
        await pool.close()
        assert not watchers()
