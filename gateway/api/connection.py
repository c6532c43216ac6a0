"""One HTTP connection as our endpoints see it: its headers, its body, whether it is still there."""

import asyncio
import contextlib
from collections.abc import Collection
from types import TracebackType
from typing import Self

from litestar.types import Receive, Scope

from gateway.errors import BadRequest, Stopping
from gateway.parts import Parts

JSON = "application/json"
WATCHER = "client-watch"
LINGER_S = 2.0  # a client that sends too much still sends: it reads the answer afterwards
BODY_S = 60.0  # for a whole body; one that trickles in holds a connection


class BodyTooLarge(BadRequest):
    """The body is larger than the settings allow."""

    status = 413
    code = "request_too_large"


class UnsupportedMediaType(BadRequest):
    """The body is encoded in a way we do not decode."""

    status = 415


class BodyTooSlow(BadRequest):
    """The client took too long to send its body."""

    status = 408
    code = "request_timeout"


class ClientGone(Exception):
    """The client closed the connection; nobody is left to answer."""


def parts_of(scope: Scope) -> Parts:
    """Return the opened parts of the app a request came to."""
    parts: Parts = scope["litestar_app"].state["parts"]
    return parts


def headers_of(scope: Scope, wanted: Collection[bytes] | None = None) -> dict[str, str]:
    """Return headers by lower-case name, repeated ones joined with commas (RFC 9110, 5.3)."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if wanted is None or name in wanted:
            key, text = name.decode("latin-1"), value.decode("latin-1")
            found[key] = f"{found[key]},{text}" if key in found else text
    return found


async def read_json(
    receive: Receive, headers: dict[str, str], limit_bytes: int, limit_s: float = BODY_S
) -> bytes:
    """Return the whole body of a JSON request.

    Raises:
        BadRequest: another content type, a content encoding, a body over the limit, or too slow.
        ClientGone: the client left before the body was complete.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise BadRequest(f"content-type must be {JSON}, got {kind or 'none'}", param="content-type")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("compressed bodies are not supported", param="content-encoding")
    announced = headers.get("content-length", "")
    length = int(announced) if announced.isdecimal() else None
    try:
        async with asyncio.timeout(limit_s):
            if length is not None and length > limit_bytes:
                raise _too_large(limit_bytes)
            return await _read(receive, length, limit_bytes)
    except BodyTooLarge:
        await _discard(receive)
        raise
    except TimeoutError:
        raise BodyTooSlow(f"the request body took longer than {limit_s:g} s to arrive") from None


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the whole body of a JSON request, bounded by the settings; raises as `read_json`."""
    limit_bytes = parts_of(scope).settings.max_body_bytes
    return await read_json(receive, headers_of(scope), limit_bytes)


async def _read(receive: Receive, length: int | None, limit_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientGone
        chunk = message["body"]
        chunks.append(chunk)
        size += len(chunk)
        if size > limit_bytes:
            raise _too_large(limit_bytes)
        if size == length or not message["more_body"]:
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _discard(receive: Receive) -> None:
    """Let the rest of a body pass for a moment: who is cut off while sending reads no answer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while (message := await receive())["type"] == "http.request" and message["more_body"]:
                pass


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(f"the request body is larger than {limit_bytes} bytes")


class ClientWatch:
    """Cancels the work inside its block when the client goes away, and raises `ClientGone`.

    A cancellation by anyone else is the server's, whose time to stop is up: it raises `Stopping`.

    Watching starts after a moment, so that quick answers pay a timer and no task.
    Source: measured, a watching task costs an exact hit about a tenth of its time.
    """

    def __init__(self, receive: Receive, patience_s: float = 0.02) -> None:
        self._receive = receive
        self._patience_s = patience_s
        self._watcher: asyncio.Task[None] | None = None
        self._is_gone = False

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._timer = loop.call_later(self._patience_s, self._start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.release()
        if isinstance(error, asyncio.CancelledError):
            reason = self.reason()
            raise reason from None

    def reason(self) -> ClientGone | Stopping:
        """Take back the cancellation just caught, and say what it was for."""
        assert self._task is not None
        self._task.uncancel()
        return ClientGone() if self._is_gone else Stopping()

    def release(self) -> None:
        """Watch no longer: the answer is complete, and a connection that ends now is in order."""
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    def _start(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch(), name=WATCHER)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        assert self._task is not None
        self._task.cancel()
