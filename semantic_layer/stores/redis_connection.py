"""Connections to Redis or Valkey; the only file that names the client library."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, RedisError

from semantic_layer.breaker import Breaker, BreakerSettings
from semantic_layer.errors import StoreError, StoreUnavailable


class StoreFull(StoreUnavailable):
    """The server refuses to write because its memory is full."""


class RedisConnection:
    """A pool over ``redis://``, ``rediss://`` or ``unix://``; nothing is connected before its use.

    At most ``max_connections`` commands run at once; a caller waits ``wait_s`` for its turn at
    most.

    A cancelled command closes its connection (the client library does so on any error while
    reading). A connection's return to the pool never suspends, hence cannot be cancelled: commands
    pass a semaphore of our own rather than the library's blocking pool, whose return waits on a
    lock and loses the connection when cancelled there.
    Source: redis-py 8.1 `BlockingConnectionPool.release`; redis-py issues 2624 and 2665.

    A ``guarded`` one has a breaker: after failures in a row, commands fail at once for a while.

    Raises:
        StoreError: the URL has an option that is unknown or no value of its kind.
    """

    def __init__(
        self,
        url: str,
        *,
        connect_timeout_s: float = 1.0,
        command_timeout_s: float = 1.0,
        wait_s: float = 0.5,
        max_connections: int = 32,
        guarded: bool = False,
    ) -> None:
        settings = BreakerSettings(deadline_s=connect_timeout_s + command_timeout_s)
        self._breaker = Breaker("redis", settings) if guarded else None
        try:
            self._pool = ConnectionPool.from_url(
                url,
                max_connections=2 * max_connections,  # returns may lag behind the semaphore
                socket_connect_timeout=connect_timeout_s,
                socket_timeout=command_timeout_s,
                retry=Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,)),
                protocol=2,
            )
            options = self._pool.connection_kwargs
            self._pool.connection_class(**options)  # connects nothing, but reads every option
        except (TypeError, ValueError) as error:
            raise StoreError(f"redis: the URL is not understood: {error}") from error
        self.client: Any = Redis(
            connection_pool=self._pool
        )  # its replies follow its options, not types
        self._turns = asyncio.Semaphore(max_connections)
        self._wait_s = wait_s

    async def run(self, command: Callable[[], Awaitable[Any]]) -> Any:
        """Await one command in its turn.

        Raises:
            StoreUnavailable: it is slow, down, or full (`StoreFull`).
        """
        if self._breaker is None:
            return await self._run(command)
        return await self._breaker.call(lambda: self._run(command))

    async def _run(self, command: Callable[[], Awaitable[Any]]) -> Any:
        try:
            if self._turns.locked():
                async with asyncio.timeout(self._wait_s):
                    await self._turns.acquire()
            else:
                await self._turns.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("redis: all connections are busy") from error
        try:
            return await command()
        except OutOfMemoryError as error:
            raise StoreFull(f"redis: {error}") from error
        except (RedisError, OSError, TimeoutError) as error:
            raise StoreUnavailable(f"redis: {error}") from error
        finally:
            self._turns.release()

    async def execute(self, pipeline: Any) -> Any:
        """Run a pipeline in its turn; raises as `run` does."""

        async def execute() -> Any:
            async with pipeline:  # gives its connection back even if loading scripts is cancelled
                return await pipeline.execute()

        return await self.run(execute)

    async def close(self) -> None:
        """Close all connections; idempotent."""
        await self.client.aclose()
        await self._pool.aclose()
