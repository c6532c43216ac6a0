"""One request to one address and the bytes of its answer as they arrive. Knows no retries."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager, suppress
from typing import cast

import httpx

from gateway.backends.upstream.refusal import envelope
from gateway.backends.upstream.timeouts import Timeouts
from gateway.errors import (
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    UpstreamAuth,
    UpstreamStatus,
)

RELAYED_HEADERS = ("retry-after", "x-ratelimit-")
UNAUTHORISED = frozenset({401, 403, 407})
CREDENTIALS = frozenset({"authorization", "x-api-key", "api-key"})
MAX_ERROR_BYTES = 1 << 20
DRAIN_S = 0.25

Chunks = AsyncGenerator[bytes, None]


class ConnectTimeout(BackendTimeout):
    """Nobody took the connection in time, so nothing was sent."""


class Exchange:
    """A response that has given its first byte, or its end.

    ``chunks`` gives the body as it arrives. It raises `BackendTimeout` when the upstream is silent
    for too long and `BackendError` when the connection breaks.
    """

    def __init__(self, response: httpx.Response, chunks: Chunks) -> None:
        self.response = response
        self.chunks = chunks

    @property
    def is_whole(self) -> bool:
        """Whether the body is one JSON text, not a stream of events."""
        return "json" in self.response.headers.get("content-type", "")

    async def drain(self) -> None:
        """Read the end that follows the answer, so that the connection can serve again."""
        with suppress(BackendError, TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                async for _ in self.chunks:
                    pass

    async def refusal(self, name: str, headers: Collection[str] = ()) -> BackendError:
        """Read the body of an answer that is no success; return it as an error.

        ``headers`` names those that were added for this client, in lower case. Unless its own
        credentials are among them, it is not the client who is unauthorised.
        """
        response, text = self.response, bytearray()
        status = response.status_code
        if status in UNAUTHORISED and CREDENTIALS.isdisjoint(headers):
            return UpstreamAuth(f"upstream {name} answered {status}: it refuses the gateway's key")
        if not response.is_error:
            return BackendError(f"upstream {name} answered {status}, which is no answer")
        with suppress(BackendError):
            async for chunk in self.chunks:
                text += chunk
                if len(text) > MAX_ERROR_BYTES:
                    break
        return UpstreamStatus(status, envelope(status, bytes(text)), _relayed(response.headers))


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, request: httpx.Request, timeouts: Timeouts, name: str
) -> AsyncIterator[Exchange]:
    """Send a request and wait for the first byte of its answer; closes everything on leaving.

    Raises:
        BackendUnavailable: the address cannot be reached, or broke before the first byte.
        BackendTimeout: the upstream was silent for too long.
    """
    response, first, rest = await _begun(client, request, timeouts, name)
    try:
        async with aclosing(rest), aclosing(_whole(first, rest, timeouts.idle_s, name)) as chunks:
            yield Exchange(response, chunks)
    finally:
        await response.aclose()


async def _begun(
    client: httpx.AsyncClient, request: httpx.Request, timeouts: Timeouts, name: str
) -> tuple[httpx.Response, bytes | None, Chunks]:
    limit_s = timeouts.first_byte_s
    try:
        async with asyncio.timeout(limit_s):
            response = await client.send(request, stream=True)
            try:
                received = cast("Chunks", response.aiter_bytes())
                return response, await anext(received, None), received
            except BaseException:
                await response.aclose()
                raise
    except httpx.ConnectTimeout as error:
        raise ConnectTimeout(_silent(name, timeouts.connect_s)) from error
    except TimeoutError as error:
        raise BackendTimeout(_silent(name, limit_s)) from error
    except (httpx.HTTPError, httpx.StreamError) as error:
        raise BackendUnavailable(f"upstream {name} is not reachable: {error!r}") from error


async def _whole(first: bytes | None, rest: Chunks, idle_s: float, name: str) -> Chunks:
    chunk = first
    while chunk is not None:
        yield chunk
        try:
            async with asyncio.timeout(idle_s):
                chunk = await anext(rest, None)
        except TimeoutError as error:
            raise BackendTimeout(_silent(name, idle_s)) from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise BackendError(f"upstream {name} cut its answer: {error!r}") from error


def _silent(name: str, limit_s: float) -> str:
    return f"upstream {name} was silent for {limit_s:g} s"


def _relayed(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith(RELAYED_HEADERS)}
