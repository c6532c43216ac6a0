"""Calls of the upstream backend, and what is collected of their answers."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from gateway.answer import Answer as Whole
from gateway.answer import Assembler
from gateway.backends.base import Event, Work
from gateway.backends.upstream import UpstreamBackend

MESSAGES = [{"role": "user", "content": "Say something."}]
Backends = Callable[..., UpstreamBackend]


def work(**body: Any) -> Work:
    return Work("req-1", "stub-model", {"model": "stub-model", "messages": MESSAGES, **body}, b"")


async def events_of(backend: UpstreamBackend, **body: Any) -> list[Event]:
    return [event async for event in backend.stream(work(**body))]


async def answer_of(backend: UpstreamBackend, **body: Any) -> Whole:
    assembler = Assembler()
    for given in await events_of(backend, **body):
        assembler.add(given)
    assert assembler.answer is not None
    return assembler.answer


async def received_before(
    error: type[BaseException], backend: UpstreamBackend, **body: Any
) -> tuple[list[Event], Any]:
    """Collect what a generation gave before it raised."""
    events: list[Event] = []

    async def read() -> None:
        async for given in backend.stream(work(**body)):
            events.append(given)  # noqa: PERF401 - what came before the error is kept

    with pytest.raises(error) as caught:
        await read()
    return events, caught.value


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}/v1"
