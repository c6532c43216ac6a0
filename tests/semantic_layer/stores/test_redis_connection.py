"""Connections to Redis: what their URL may say."""

import pytest

from semantic_layer.errors import StoreError
from semantic_layer.stores.redis_connection import RedisConnection


@pytest.mark.parametrize("query", ["socket_timeout=soon", "passwort=x", "health_check_interval=x"])
def test_option_that_is_not_understood_is_named_before_anything_is_asked(query: str) -> None:
    """One clear line at the start, instead of a failure of every command."""
    with pytest.raises(StoreError, match="the URL is not understood") as caught:
        RedisConnection(f"redis://localhost/0?{query}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://h", "rediss://h:1/2?db=3", "unix:///tmp/x.sock?db=1"])
async def test_address_that_is_understood_connects_nothing_yet(url: str) -> None:
    """A server that is down is picked up when it comes."""
    await RedisConnection(url).close()
