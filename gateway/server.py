"""The HTTP server around the app: says when it listens, drains and stops on a signal.

Knows nothing of what the app does.
"""

import asyncio
import contextlib
import gc
import json
import resource
import signal
from collections.abc import Callable, Iterator

import uvloop
from granian.constants import Interfaces
from granian.server.embed import Server
from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from gateway.address import numeric, url_of
from gateway.api.errors import stopping_answer
from gateway.closing_time import closing_within

CTRL_C_S = 2.0  # who presses Ctrl-C waits no longer than this for requests in flight
CLOSE_S = 0.5  # then idle connections are closed within this
CUT_S = 0.5  # and what is left is cut within this
CLOSING_S = 15.0  # parts that take longer to close are left to end with the process
BACKLOG = 1024
MOST_CONNECTIONS = 16_384  # open at once, idle ones among them; more wait until one is closed
MOST_FILES = 4 * MOST_CONNECTIONS  # a connection may ask an upstream, and Redis

_PROBE_INTERVAL_S = 0.02
_READY = "/health/ready"
_PROBES = (_READY, "/health/live", "/metrics")


class StartInterrupted(Exception):
    """A stop signal came before the gateway was ready."""


class InFlight:
    """ASGI middleware that knows the requests in flight, so that stopping waits for or ends them.

    While it drains, new requests get 503 and `/health/ready` says so; other probes go on.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[object] | None] = set()
        self._is_cut = False
        self._is_draining = False
        self._empty = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; a cut request ends without a traceback."""
        path = scope.get("path", "")
        if self._is_draining and (path == _READY or path not in _PROBES):
            if scope["type"] == ScopeType.HTTP:
                await _refuse(send, path)
            return
        if path in _PROBES:
            await self._app(scope, receive, send)
            return
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self._is_cut:
                raise
        finally:
            self._tasks.discard(task)
            self._look()

    def drain(self) -> None:
        """Take no new requests."""
        self._is_draining = True
        self._look()

    @property
    def is_empty(self) -> bool:
        """Whether it drained, and the last request has ended."""
        return self._empty.is_set()

    async def empty(self) -> None:
        """Wait until the last request has ended, while draining."""
        await self._empty.wait()

    def _look(self) -> None:
        if self._is_draining and not self._tasks:
            self._empty.set()

    def cut(self) -> None:
        """Cancel every request in flight; one that can still say so tells its client."""
        self._is_cut = True
        for task in self._tasks:
            if task is not None:
                task.cancel()


class _StopSignals:
    """SIGINT and SIGTERM as events: the first asks to drain, the second to cut.

    ``is_hurried`` says that the first was SIGINT. Until `started` is called they cancel the
    starting task instead.
    """

    def __init__(
        self, starting: "asyncio.Task[None]", on_hangup: Callable[[], None] = lambda: None
    ) -> None:
        self._on_hangup = on_hangup
        self.drain = asyncio.Event()
        self.cut = asyncio.Event()
        self.is_hurried = False
        self._starting: asyncio.Task[None] | None = starting

    def started(self) -> None:
        self._starting = None

    def hang_up(self) -> None:
        if self._starting is None:
            self._on_hangup()

    def receive(self, number: int) -> None:
        if not self.drain.is_set():
            self.is_hurried = number == signal.SIGINT
        if self._starting is not None:
            self._starting.cancel()
        (self.cut if self.drain.is_set() else self.drain).set()


async def _refuse(send: Send, path: str) -> None:
    status, body = stopping_answer(path)
    if path == _READY:
        body = {"status": "stopping"}
    headers = [
        (b"content-type", b"application/json"),
        (b"connection", b"close"),
        (b"retry-after", b"1"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(
        {"type": "http.response.body", "body": json.dumps(body).encode(), "more_body": False}
    )


def run(
    app: Litestar,
    host: str,
    port: int,
    on_listening: Callable[[str], None],
    *,
    drain_s: float,
    on_hangup: Callable[[], None] = lambda: None,
    closing_s: float = CLOSING_S,
) -> None:
    """Serve until SIGINT or SIGTERM, then drain, close the app's parts and return.

    Args:
        app: opened through its own lifespan, so that what fails there is raised from here.
        host: name or address to listen on.
        port: a port that `free_port` gave.
        on_listening: called with the URL once connections are accepted.
        drain_s: how long requests in flight may go on after SIGTERM, and after SIGINT if that is
            less than `CTRL_C_S`; a second signal ends them.
        on_hangup: called in the event loop for each SIGHUP once the gateway is ready.
        closing_s: how long the app's parts may take to close; then the process ends, and says why.

    Raises:
        StartInterrupted: a signal came before that.
    """
    _allow_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(app, host, port, on_listening, drain_s, on_hangup, closing_s))


def _allow_files() -> None:
    """Let this process hold as many open files as the system grants it, enough for connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _run(
    app: Litestar,
    host: str,
    port: int,
    on_listening: Callable[[str], None],
    drain_s: float,
    on_hangup: Callable[[], None],
    closing_s: float,
) -> None:
    starting = asyncio.current_task()
    assert starting is not None
    with (
        _stop_signals(_StopSignals(starting, on_hangup)) as stop,
        contextlib.ExitStack() as leaving,
    ):
        try:
            async with app.lifespan():
                stop.started()
                spare_opened_parts()
                await _serve(app, host, port, on_listening, stop, drain_s)
                leaving.enter_context(closing_within(closing_s))
        except asyncio.CancelledError:
            raise StartInterrupted("stopped before it was ready") from None
        except ExceptionGroup as group:
            raise _only_one(group) from None


def spare_opened_parts() -> None:
    """Let the garbage collector look no more at what lives as long as the process.

    Source: measured with the bundled models opened, 147 ms for a whole collection, during which
    nobody is answered; 0.01 ms so.
    """
    gc.collect()
    gc.freeze()


def _only_one(error: Exception) -> Exception:
    """Return the error that alone makes up a group, as task groups wrap what passes them."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _serve(
    app: Litestar,
    host: str,
    port: int,
    on_listening: Callable[[str], None],
    stop: _StopSignals,
    drain_s: float,
) -> None:
    in_flight = InFlight(app)
    server = Server(
        in_flight,
        address=numeric(host, port),
        port=port,
        interface=Interfaces.ASGINL,
        backlog=BACKLOG,
        backpressure=MOST_CONNECTIONS,
        websockets=False,
        log_enabled=False,
    )
    serving = asyncio.create_task(server.serve())
    announcing = asyncio.create_task(_announce(host, port, on_listening))
    await _first(serving, asyncio.create_task(stop.drain.wait()))
    announcing.cancel()
    in_flight.drain()
    ends = [asyncio.create_task(ended()) for ended in (in_flight.empty, stop.cut.wait)]
    patience_s = min(drain_s, CTRL_C_S) if stop.is_hurried else drain_s
    await _first(serving, *ends, timeout_s=patience_s)
    server.stop()  # type: ignore[no-untyped-call]
    if in_flight.is_empty:
        await _first(serving, asyncio.create_task(stop.cut.wait()), timeout_s=CLOSE_S)
    in_flight.cut()
    await _first(serving, timeout_s=CUT_S)
    if serving.done():
        await serving
    serving.cancel()


async def _first(*tasks: "asyncio.Task[object]", timeout_s: float | None = None) -> None:
    """Wait until one of the tasks is done; the first one is left running, the others not."""
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks[1:]:
        task.cancel()


async def _announce(host: str, port: int, on_listening: Callable[[str], None]) -> None:
    address = numeric(host, port)
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(address, port)
            writer.close()
            break
        await asyncio.sleep(_PROBE_INTERVAL_S)
    on_listening(url_of(host, port))


@contextlib.contextmanager
def _stop_signals(stop: _StopSignals) -> Iterator[_StopSignals]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.receive, number)
    loop.add_signal_handler(signal.SIGHUP, stop.hang_up)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        loop.remove_signal_handler(signal.SIGHUP)
