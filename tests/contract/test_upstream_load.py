"""Many streams and slow readers: memory stays flat, nobody waits for anybody."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.contract.client import until
from tests.contract.stack import Stack, serving, upstream_toml
from tests.contract.streaming import request, stream_all
from tests.fakes.upstream import DONE, Answer, Call, FakeUpstream, chunk, echo, last_user_text

NUM_STREAMS = 3_000
WARM = 1_000
MAX_GROWTH_BYTES = 12 << 20
LONG = 20_000
PIECE = "x" * 4_000


class Fountain:
    """Gives very long answers to prompts that ask for one, and counts what it could send."""

    def __init__(self) -> None:
        self.num_sent = 0

    def __call__(self, call: Call) -> Answer:
        return Answer(self._pieces()) if "long" in last_user_text(call) else echo(call)

    def _pieces(self) -> Iterator[bytes]:  # type: ignore[override]
        for _ in range(LONG):
            self.num_sent += 1
            yield chunk({"content": PIECE})
        yield from (chunk({}, finish="stop"), DONE)


@pytest.fixture(scope="module")
def fountain() -> Fountain:
    return Fountain()


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path, fountain: Fountain
) -> Iterator[Stack]:
    with ExitStack() as running:
        fake = running.enter_context(FakeUpstream(fountain))
        settings = {"LOCAL__MODEL": "none", "SEMANTIC__ENABLED": "false"}
        folder = tmp_path_factory.mktemp("load")
        toml = upstream_toml(fake.base_url)
        yield running.enter_context(serving(folder, serving_models, toml=toml, **settings))


def test_memory_is_flat_when_thousands_of_streams_have_ended(stack: Stack) -> None:
    """Misses that are stored, misses that are not, hits and bypasses leave nothing behind."""
    controls = ["", "no-store", "no-cache, no-store"]
    requests = [
        request(f"Say {at % 60}.", cache_control=controls[at % 3]) for at in range(NUM_STREAMS)
    ]
    process, seen = psutil.Process(stack.pid), list[int]()

    def look(num_done: int) -> None:
        if num_done in (WARM, NUM_STREAMS):
            seen.append(process.memory_info().rss)

    asyncio.run(stream_all(stack.port, requests, connections=8, on_done=look))
    assert seen[1] - seen[0] < MAX_GROWTH_BYTES, [rss >> 20 for rss in seen]


def test_others_are_served_and_the_upstream_waits_when_clients_stop_reading(
    stack: Stack, fountain: Fountain
) -> None:
    """What nobody reads stays in the upstream, and goes on when they read again or leave."""
    before = psutil.Process(stack.pid).memory_info().rss
    with ExitStack() as open_sockets:
        stalled = []
        for at in range(4):
            client = open_sockets.enter_context(socket.create_connection(("127.0.0.1", stack.port)))
            client.sendall(request(f"A long answer, {at}."))
            stalled.append(client)
        until(lambda: _is_still(fountain), what="the upstream waits")
        assert fountain.num_sent < len(stalled) * LONG / 2, "what sockets hold, no more"
        for at in range(20):
            stack.client.answer(f"Say {at} now.", model="stub-model")
        assert psutil.Process(stack.pid).memory_info().rss - before < 100 << 20
        num_sent = fountain.num_sent
        for _ in range(200):
            stalled[0].recv(1 << 20)
        until(lambda: fountain.num_sent > num_sent, what="the upstream goes on")


def _is_still(fountain: Fountain) -> bool:
    num_sent = fountain.num_sent
    asyncio.run(asyncio.sleep(0.5))
    return 0 < num_sent == fountain.num_sent
