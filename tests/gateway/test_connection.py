"""Bodies that come slowly, or never."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.api.connection import BodyTooLarge, BodyTooSlow, read_json

JSON = {"content-type": "application/json"}


def chunks(*bodies: bytes) -> Any:
    """Return a receive that gives these parts, the last one unfinished, and then nothing."""
    left: Iterator[bytes] = iter(bodies)

    async def receive() -> Any:
        for body in left:
            return {"type": "http.request", "body": body, "more_body": True}
        return await asyncio.Event().wait()

    return receive


@pytest.mark.parametrize("parts", [(), (b"{",), (b"{", b'"model":')])
async def test_request_ends_when_its_body_never_comes(parts: tuple[bytes, ...]) -> None:
    """A body that stops on its way is given up, with an error that says so."""
    with pytest.raises(BodyTooSlow, match="took longer than"):
        await read_json(chunks(*parts), JSON, 1000, limit_s=0.05)


async def test_body_is_whole_when_it_comes_in_parts() -> None:
    """The announced length ends it, whatever is said of more to come."""
    headers = {**JSON, "content-length": "7"}
    assert await read_json(chunks(b'{"a"', b":1}"), headers, 1000, limit_s=60) == b'{"a":1}'


@pytest.mark.parametrize("announced", [True, False])
async def test_body_is_let_pass_when_it_is_too_large(announced: bool) -> None:
    """All that the client sends is taken before it is told, so that it reads what it is told."""
    sent = [b"x" * 100] * 4
    left = iter(sent)

    async def receive() -> Any:
        return {"type": "http.request", "body": next(left), "more_body": left.__length_hint__() > 0}

    headers = {**JSON, "content-length": "400"} if announced else JSON
    with pytest.raises(BodyTooLarge):
        await read_json(receive, headers, 150)
    assert list(left) == []
