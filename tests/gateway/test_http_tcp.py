"""The HTTP front on a real socket: clients that leave, clients that stay, the OpenAI SDK."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import httpx
import openai
import pytest

from gateway.api.connection import WATCHER
from gateway.backends.base import Delta, Event, Final, Finish, Usage, Work
from gateway.settings import Settings
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway

URL = "/v1/chat/completions"
TEXT = "晚安🌙 café 👩‍🚀"


class EndlessBackend(FakeBackend):
    """Begins an answer and never ends it; tells when it began and when it was closed."""

    def __init__(self, deltas: int = 1) -> None:
        super().__init__([])
        self.deltas = deltas
        self.began = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self, work: Work) -> AsyncIterator[Event]:
        self.calls.append(work)
        try:
            for _ in range(self.deltas):
                yield Delta(0, "x")
            self.began.set()
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def post_and_leave(url: str, body: bytes, until: Callable[[], bool]) -> None:
    """Send a request over a bare socket and drop the connection once something holds."""
    host, _, port = url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(_head(len(body)) + body)
        await writer.drain()
        await holds(until)
    finally:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def _head(length: int) -> bytes:
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % length
    )


async def holds(condition: Callable[[], bool]) -> None:
    """Wait until something is true that no event tells of."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("stream", [b"true", b"false"])
@pytest.mark.parametrize("deltas", [0, 1])
async def test_generation_ends_when_the_client_goes_away(stream: bytes, deltas: int) -> None:
    """Whole or streamed, before or after the first token: the backend's work is closed."""
    backend = EndlessBackend(deltas)
    gateway = MemoryGateway(backend)
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":%b}' % stream
    async with gateway.listening() as url:
        await post_and_leave(url, body, backend.began.is_set)
        async with asyncio.timeout(5):
            await backend.closed.wait()
            await gateway.flights.drain()
    assert [record.end for record in gateway.records] == ["aborted"]
    assert (await gateway.parts.cache.counts())["redis"] == 0


async def test_others_still_hear_it_when_one_of_two_identical_clients_leaves() -> None:
    """The generation goes on for whoever stayed."""
    backend = FakeBackend([Delta(0, "x"), Finish(0, "stop"), Final(Usage(1, 1, 0))])
    backend.gate.clear()
    gateway = MemoryGateway(backend)
    data = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
    headers = {"content-type": "application/json"}

    def both_listen() -> bool:
        return any(len(flight._places) == 2 for flight in gateway.flights._flying)

    async with gateway.listening() as url, httpx.AsyncClient(timeout=30) as client:
        staying = asyncio.create_task(client.post(url + URL, content=data, headers=headers))
        await post_and_leave(url, data, both_listen)
        await holds(lambda: bool(gateway.records))
        backend.gate.set()
        response = await staying
    assert response.json()["choices"][0]["message"]["content"] == "x"
    assert len(backend.calls) == 1
    assert [record.end for record in gateway.records] == ["aborted", "ok"]


async def test_connection_serves_on_when_a_slow_answer_was_watched() -> None:
    """Watching for a disconnect takes nothing of the next request on the same connection."""
    backend = FakeBackend(whole("slow"))
    backend.gate.clear()
    gateway = MemoryGateway(backend)
    limits = httpx.Limits(max_connections=1)

    def is_watched() -> bool:
        return WATCHER in {task.get_name() for task in asyncio.all_tasks()}

    async with (
        gateway.listening() as url,
        httpx.AsyncClient(base_url=url, limits=limits) as client,
    ):
        for number in range(3):
            body = {"model": "m", "messages": [{"role": "user", "content": f"{number}"}]}
            asking = asyncio.create_task(client.post(URL, json=body))
            await holds(is_watched)
            backend.gate.set()
            assert (await asking).json()["choices"][0]["message"]["content"] == "slow"
            await holds(lambda: not is_watched())
            backend.gate.clear()
            again = await client.post(URL, json=body)
            assert again.headers["x-strata-cache"] == "exact"
    assert {record.end for record in gateway.records} == {"ok"}


@pytest.mark.parametrize("size", [10, 200_000])
async def test_body_arrives_whole_when_it_is_chunked_or_large(size: int) -> None:
    """Nothing of a body is lost, announced or not."""
    gateway = MemoryGateway(FakeBackend(whole("ok")))
    body = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}' % (b"x" * size)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    headers = {"content-type": "application/json"}
    async with gateway.listening() as url, httpx.AsyncClient() as client:
        for content, outcome in ((body, "miss"), (pieces(), "exact")):
            response = await client.post(url + URL, content=content, headers=headers)
            assert response.headers["x-strata-cache"] == outcome
            assert await gateway.write_back.drain(30)


async def test_client_reads_why_when_its_body_is_too_large() -> None:
    """The connection lives until the client has sent what it began to send."""
    settings = Settings(max_body_bytes=1 << 20, log=QUIET.log)
    gateway = MemoryGateway(FakeBackend([]), settings)
    headers = {"content-type": "application/json"}
    async with gateway.listening() as url, httpx.AsyncClient() as client:
        response = await client.post(url + URL, content=b" " * (32 << 20), headers=headers)
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "request_too_large"


def sdk(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


async def test_openai_sdk_works_when_pointed_at_the_gateway() -> None:
    """The official client reads answers, streams, usage, models and errors."""
    gateway = MemoryGateway(FakeBackend(whole(TEXT)))
    async with gateway.listening() as url, sdk(url) as client:
        messages = [{"role": "user", "content": "Hi"}]
        answer = await client.chat.completions.create(model="m", messages=messages)  # type: ignore[call-overload]
        assert answer.choices[0].message.content == TEXT
        assert answer.usage.prompt_tokens_details.cached_tokens == 0
        raw = await client.chat.completions.with_raw_response.create(  # type: ignore[call-overload]
            model="m", messages=messages, extra_body={"strata": {"namespace": "blue"}}
        )
        assert raw.headers["x-strata-cache"] == "miss"
        stream = await client.chat.completions.create(  # type: ignore[call-overload]
            model="m",
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
        deltas = [chunk.choices[0].delta.content or "" for chunk in chunks[:-1]]
        assert "".join(deltas) == TEXT
        assert chunks[-1].usage.total_tokens == 7 + len(TEXT)
        assert [model.id async for model in client.models.list()] == ["m"]
        with pytest.raises(openai.NotFoundError) as missing:
            await client.chat.completions.create(model="nobody", messages=messages)  # type: ignore[call-overload]
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as bad:
            await client.chat.completions.create(  # type: ignore[call-overload]
                model="m", messages=messages, temperature=9
            )
        assert bad.value.param == "temperature"


async def test_openai_sdk_raises_when_a_stream_breaks() -> None:
    """An error after the first byte is an exception for the client, not a short answer."""
    backend = FakeBackend([Delta(0, "half")], error=RuntimeError("died"))
    gateway = MemoryGateway(backend)
    async with gateway.listening() as url, sdk(url) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
        with pytest.raises(openai.APIError, match="internal error"):
            _ = [chunk async for chunk in stream]
