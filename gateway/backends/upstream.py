"""Any OpenAI-compatible engine over HTTP. Knows no cache and no environment.

The upstream is always asked for a stream with usage, whatever the client wants, so that an abort
reaches it at once; one that answers whole is understood too. Everything else in the body passes
untouched.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import httpx
import msgspec

from gateway.backends.base import Event, ModelInfo, PartHealth, Work
from gateway.backends.chunks import ChunkReader
from gateway.backends.sse import SseParser
from gateway.errors import BackendError, BackendTimeout, BackendUnavailable, UpstreamStatus

RELAYED_HEADERS = ("retry-after", "x-ratelimit-")
KEEPALIVE_S = 2.0  # shorter than servers' usual 5 s, so that no request meets a closing connection
MAX_ERROR_BYTES = 1 << 20
MAX_QUOTED_CHARS = 300
PROBE_S = 1.0
DRAIN_S = 0.25


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait for a connection, for the first byte of an answer, and between bytes."""

    connect_s: float = 5.0
    first_byte_s: float = 120.0
    idle_s: float = 120.0


class UpstreamBackend:
    """Relays chat requests to one named upstream.

    ``base_url`` is what an SDK takes, with its ``/v1``; ``replicas`` are further addresses of the
    same engine, tried in order when the one before gave no byte. ``on_answer(name, status)`` is
    told how each attempt was answered: the status code, ``unreachable`` or ``timeout``.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        models: Sequence[str],
        *,
        replicas: Sequence[str] = (),
        api_key: str | None = None,
        timeouts: Timeouts | None = None,
        on_answer: Callable[[str, str], None] = lambda _name, _status: None,
    ) -> None:
        self.name = name
        self._urls = [url.rstrip("/") for url in (base_url, *replicas)]
        self._models = [
            ModelInfo(model, owned_by=name, fingerprint=_fingerprint(name, model, self._urls[0]))
            for model in dict.fromkeys(models)
        ]
        self._timeouts = timeouts or Timeouts()
        self._on_answer = on_answer
        self._client = httpx.AsyncClient(
            headers=_headers(api_key),
            timeout=httpx.Timeout(None, connect=self._timeouts.connect_s),
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEPALIVE_S),
            trust_env=False,
        )

    def models(self) -> list[ModelInfo]:
        """List the models named in the settings."""
        return self._models

    async def stream(self, work: Work) -> AsyncIterator[Event]:
        """Generate; closing the iterator closes the connection.

        Raises:
            UpstreamStatus: the upstream refused the request.
            BackendUnavailable: no replica could be reached.
            BackendTimeout: it was silent for too long.
            BackendError: its answer was broken or cut, also after events were given.
        """
        response = await self._open(work)
        try:
            async with aclosing(self._chunks(response)) as chunks:
                if not response.is_success:
                    raise await self._refusal(response, chunks)
                reader = ChunkReader(work.body.get("n") or 1)
                framing = _framing(response)
                async for chunk in chunks:
                    for event in reader.read_all(framing.feed(chunk)):
                        yield event
                    if reader.is_done:
                        break
                for event in reader.read_all(framing.close()):
                    yield event
                for event in reader.end():
                    yield event
                await _drain(chunks)
        finally:
            await response.aclose()

    async def health(self) -> PartHealth:
        """Say whether any replica answers."""
        probes = [asyncio.create_task(self._answers(url)) for url in self._urls]
        answers = await asyncio.gather(*probes)
        if any(answers):
            return PartHealth(True, "ready", f"{sum(answers)} of {len(answers)} reachable")
        return PartHealth(False, "down", f"{', '.join(self._urls)} not reachable")

    async def close(self) -> None:
        """Close every connection; idempotent."""
        await self._client.aclose()

    async def _open(self, work: Work) -> httpx.Response:
        """Return the response of the first replica that sends one, its body still unread."""
        content = msgspec.json.encode(_body(work))
        failure: BackendError | None = None
        for url in self._urls:
            request = self._client.build_request(
                "POST",
                f"{url}/chat/completions",
                content=content,
                headers={"x-request-id": work.request_id},
            )
            try:
                return await self._send(request)
            except httpx.ConnectTimeout as error:
                failure = self._silence(self._timeouts.connect_s)
                failure.__cause__ = error
            except httpx.TransportError as error:
                failure = BackendUnavailable(f"upstream {self.name} is not reachable: {error!r}")
                failure.__cause__ = error
            self._on_answer(self.name, "unreachable")
        assert failure is not None, "there is always a base_url"
        raise failure

    async def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            async with asyncio.timeout(self._timeouts.first_byte_s):
                response = await self._client.send(request, stream=True)
        except TimeoutError as error:
            self._on_answer(self.name, "timeout")
            raise self._silence(self._timeouts.first_byte_s) from error
        self._on_answer(self.name, str(response.status_code))
        return response

    async def _chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Give the body as it arrives, none of its silences longer than allowed."""
        limit_s = self._timeouts.first_byte_s
        received = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
        async with aclosing(received) as body:
            while True:
                try:
                    async with asyncio.timeout(limit_s):
                        chunk = await anext(body, None)
                except TimeoutError as error:
                    raise self._silence(limit_s) from error
                except (httpx.HTTPError, httpx.StreamError) as error:
                    raise BackendError(f"upstream {self.name} cut its answer: {error!r}") from error
                if chunk is None:
                    return
                yield chunk
                limit_s = self._timeouts.idle_s

    async def _refusal(
        self, response: httpx.Response, chunks: AsyncIterator[bytes]
    ) -> BackendError:
        status, text = response.status_code, bytearray()
        if not response.is_error:
            return BackendError(f"upstream {self.name} answered {status}, which is no answer")
        with suppress(BackendError):
            async for chunk in chunks:
                text += chunk
                if len(text) > MAX_ERROR_BYTES:
                    break
        return UpstreamStatus(status, _envelope(status, bytes(text)), _relayed(response.headers))

    def _silence(self, limit_s: float) -> BackendTimeout:
        return BackendTimeout(f"upstream {self.name} was silent for {limit_s:g} s")

    async def _answers(self, url: str) -> bool:
        try:
            response = await self._client.get(f"{url}/models", timeout=PROBE_S)
        except httpx.HTTPError:
            return False
        return not response.is_server_error


def _fingerprint(name: str, model: str, base_url: str) -> str:
    identity = msgspec.json.encode([name, model, base_url])
    return f"upstream-{blake2b(identity, digest_size=16).hexdigest()}"


def _headers(api_key: str | None) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
    }
    return headers if api_key is None else {**headers, "authorization": f"Bearer {api_key}"}


def _body(work: Work) -> dict[str, Any]:
    options = work.body.get("stream_options") or {}
    return {**work.body, "stream": True, "stream_options": {**options, "include_usage": True}}


class _Whole:
    """A body that is one JSON text."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        self._body += chunk
        return []

    def close(self) -> list[bytes]:
        return [bytes(self._body)]


def _framing(response: httpx.Response) -> SseParser | _Whole:
    is_whole = "json" in response.headers.get("content-type", "")
    return _Whole() if is_whole else SseParser()


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the end that follows the answer, so that the connection can serve again."""
    with suppress(BackendError, TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def _relayed(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith(RELAYED_HEADERS)}


def _envelope(status: int, text: bytes) -> dict[str, Any]:
    """Return an error body as OpenAI's envelope, whatever shape it came in."""
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body = None
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        return body
    fields = body if isinstance(body, dict) else {}
    message = fields.get("message") or fields.get("error") or fields.get("detail")
    quoted = str(message or text.decode(errors="replace"))[:MAX_QUOTED_CHARS]
    kind = "server_error" if httpx.codes.is_server_error(status) else "invalid_request_error"
    return {
        "error": {
            "message": f"upstream answered {status}: {quoted}",
            "type": kind,
            "param": None,
            "code": None,
        }
    }
