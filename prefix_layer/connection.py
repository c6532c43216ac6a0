"""The line to one engine process: requests in flight and the events that come for them."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Callable, Iterator

import msgspec
import zmq
import zmq.asyncio

from prefix_layer.errors import EngineFailed, FailureCode
from prefix_layer.messages import (
    Abort,
    Command,
    Event,
    Failed,
    Generate,
    Tokens,
)


class Connection:
    """A DEALER to one engine process; lives as long as that process.

    Each request has a queue with room for all that can come for it, so receiving never waits for
    a slow reader. ``receiver`` is done only when the process sent what cannot be read.
    """

    def __init__(self, socket_path: str) -> None:
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.set_hwm(0)
        self._socket.connect(f"ipc://{socket_path}")
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(list[Event])
        self._waiting: dict[str, asyncio.Queue[Event]] = {}
        self._asked = itertools.count()
        self.receiver = asyncio.create_task(self._receive())
        self._heard_at = 0.0

    @property
    def silent_s(self) -> float:
        """Seconds since the engine last said something while somebody waits; 0 when none does."""
        if not self._waiting:
            return 0.0
        return asyncio.get_running_loop().time() - self._heard_at

    async def generate(self, command: Generate) -> AsyncGenerator[Tokens, None]:
        """Send a command and yield what comes for it.

        Raises:
            EngineFailed: the engine or this connection gave it up.
        """
        with self._expect(command.request_id, command.sampling.max_tokens + 2) as events:
            ended = False
            self._send(command)
            try:
                while not ended:
                    event = await events.get()
                    ended = not isinstance(event, Tokens) or event.finish_reason is not None
                    if not isinstance(event, Tokens):
                        raise _failure(event)
                    yield event
            finally:
                if not ended:
                    self._send(Abort(command.request_id))

    async def ask(self, question: Callable[[str], Command]) -> Event:
        """Send a question, made for a request id, and return its answer; leaving aborts it."""
        request_id = f"?{next(self._asked)}"
        with self._expect(request_id, 2) as events:
            self._send(question(request_id))
            try:
                return await events.get()
            except asyncio.CancelledError:
                self._send(Abort(request_id))
                raise

    def close(self, code: FailureCode, reason: str) -> None:
        """Fail what is in flight and let go of the socket."""
        self.receiver.cancel()
        for request_id, events in self._waiting.items():
            events.put_nowait(Failed(request_id, reason, code))
        self._socket.close(linger=0)
        self._context.term()

    @contextlib.contextmanager
    def _expect(self, request_id: str, max_events: int) -> Iterator[asyncio.Queue[Event]]:
        assert request_id not in self._waiting, f"request id {request_id} is in flight"
        if not self._waiting:
            self._heard_at = asyncio.get_running_loop().time()
        events: asyncio.Queue[Event] = asyncio.Queue(max_events)
        self._waiting[request_id] = events
        try:
            yield events
        finally:
            del self._waiting[request_id]

    def _send(self, command: Command) -> None:
        if not self._socket.closed:
            self._socket.send(self._encoder.encode(command), zmq.DONTWAIT)

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = self._decoder.decode(await self._socket.recv())
            self._heard_at = loop.time()
            for event in batch:
                if (events := self._waiting.get(event.request_id)) is not None:
                    events.put_nowait(event)


def _failure(event: Event) -> EngineFailed:
    if isinstance(event, Failed):
        return EngineFailed(event.code, event.message)
    return EngineFailed("engine_error", f"unexpected {type(event).__name__} from the engine")
