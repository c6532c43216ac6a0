"""The engine process: commands in, one step, events out, until the parent goes away.

Knows no text and no HTTP. Run as ``python -m prefix_layer.process`` by `prefix_layer.child`.
"""

import argparse
import ctypes
import gc
import itertools
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import zmq

from prefix_layer.config import EngineConfig, decode_config
from prefix_layer.errors import PrefixLayerError
from prefix_layer.messages import (
    Abort,
    Command,
    Event,
    Failed,
    Generate,
    GetStats,
    GetTree,
    Hello,
    Probe,
    Reset,
    Tokens,
    UnpinAll,
    Warm,
    Warmed,
)

if TYPE_CHECKING:
    from prefix_layer.engine import Engine

EXIT_UNUSABLE = 1
EXIT_NOT_LOADED = 3
MAX_FAILED_STEPS = 3
_HELLO_TIMEOUT_MS = 10_000
_PR_SET_PDEATHSIG = 1

log = logging.getLogger("strata.engine")


class EngineSocket:
    """The engine's end of the line: a ROUTER on an ipc path, one msgpack Struct per command."""

    def __init__(self, path: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.set_hwm(0)
        self._socket.bind(f"ipc://{path}")
        self._decoder = msgspec.msgpack.Decoder(Command)
        self._encoder = msgspec.msgpack.Encoder()

    def receive(self, timeout_ms: int | None) -> Iterator[tuple[bytes, Command]]:
        """Yield what has arrived, waiting up to ``timeout_ms`` for the first; None waits on."""
        while self._socket.poll(timeout_ms):
            timeout_ms = 0
            owner, payload = self._socket.recv_multipart()
            yield owner, self._decoder.decode(payload)

    def send(self, owner: bytes, events: Sequence[Event]) -> None:
        """Send one batch; an owner that has gone is ignored."""
        self._socket.send_multipart([owner, self._encoder.encode(events)])

    def close(self) -> None:
        """Close after what was sent has left, within a second."""
        self._socket.close(linger=1000)
        self._context.term()


class Server:
    """Runs one engine for whoever is at the other end of the socket.

    ``_owners`` maps each request that has not ended to the peer that waits for it.
    """

    def __init__(self, engine: "Engine", socket: EngineSocket) -> None:
        self._engine = engine
        self._socket = socket
        self._owners: dict[str, bytes] = {}
        self._failed_steps = 0

    def run(self) -> None:
        """Serve until the engine is unusable.

        Raises:
            Exception: what the engine raised, when it cannot go on.
        """
        while True:
            self.turn(timeout_ms=None)

    def turn(self, timeout_ms: int | None) -> None:
        """Take the commands that wait, then make one step if there is work."""
        for owner, command in self._socket.receive(0 if self._engine.has_work else timeout_ms):
            self._handle(owner, command)
        if self._engine.has_work:
            self._deliver(self._step())
            self._engine.rest()

    def _handle(self, owner: bytes, command: Command) -> None:
        match command:
            case Generate() | Warm():
                self._add(owner, command)
            case Abort(request_id):
                if self._owners.pop(request_id, None) is not None:
                    self._engine.abort(request_id)
            case Hello(request_id):
                answer = msgspec.structs.replace(self._engine.ready, request_id=request_id)
                self._socket.send(owner, [answer])
            case Probe():
                self._socket.send(owner, [self._engine.probe(command)])
            case GetTree():
                self._socket.send(owner, [self._engine.tree(command)])
            case Reset(request_id, keep_pinned):
                self._engine.reset(keep_pinned=keep_pinned)
                self._socket.send(owner, [self._engine.stats(request_id)])
            case UnpinAll(request_id):
                self._engine.unpin_all()
                self._socket.send(owner, [self._engine.stats(request_id)])
            case GetStats(request_id):
                self._socket.send(owner, [self._engine.stats(request_id)])

    def _add(self, owner: bytes, command: Generate | Warm) -> None:
        try:
            answer: Failed | Warmed | None = self._engine.add(command)
        except Exception as error:
            log.exception("engine refused a request")
            answer = Failed(command.request_id, _line(error), "engine_error")
        if answer is not None:
            self._socket.send(owner, [answer])
        else:
            self._owners[command.request_id] = owner

    def _step(self) -> Sequence[Tokens | Failed | Warmed]:
        try:
            events = self._engine.step()
        except Exception as error:
            log.exception("engine step failed")
            return self._fail_all(error)
        self._failed_steps = 0
        return events

    def _fail_all(self, error: Exception) -> list[Tokens | Failed | Warmed]:
        self._failed_steps += 1
        for request_id in self._owners:
            self._engine.abort(request_id)
        if self._failed_steps >= MAX_FAILED_STEPS or self._engine.has_work:
            raise error
        return [Failed(request_id, _line(error), "engine_error") for request_id in self._owners]

    def _deliver(self, events: Sequence[Tokens | Failed | Warmed]) -> None:
        """Send each owner its part of the step; an empty batch says that the engine lives."""
        batches: dict[bytes, list[Event]] = {owner: [] for owner in self._owners.values()}
        for event in events:
            owner = self._owners.get(event.request_id)
            if owner is None:
                continue
            batches[owner].append(event)
            if not isinstance(event, Tokens) or event.finish_reason is not None:
                del self._owners[event.request_id]
        for owner, batch in batches.items():
            self._socket.send(owner, batch)


def main(load: Callable[[EngineConfig], "Engine"], arguments: Sequence[str] | None = None) -> int:
    """Serve until killed; return the exit status when the engine cannot be loaded or go on."""
    parser = argparse.ArgumentParser(prog="prefix_layer.process")
    parser.add_argument("--socket", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--parent", required=True, type=int)
    options = parser.parse_args(arguments)
    _die_with_parent(options.parent)
    _share_cores()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
    socket = EngineSocket(options.socket)
    try:
        engine = load(decode_config(options.config))
    except Exception as error:
        if not isinstance(error, PrefixLayerError):
            log.exception("engine broke while loading")
        _refuse(socket, _line(error))
        return EXIT_NOT_LOADED
    gc.collect()
    gc.freeze()  # the model stays; a collection that looks at it holds up every sequence
    try:
        Server(engine, socket).run()
    except Exception:
        log.exception("engine is unusable")
    return EXIT_UNUSABLE


def _refuse(socket: EngineSocket, message: str) -> None:
    for owner, command in itertools.islice(socket.receive(_HELLO_TIMEOUT_MS), 1):
        socket.send(owner, [Failed(command.request_id, message, "engine_error")])
    socket.close()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _share_cores() -> None:
    """Let OpenMP threads that wait go to sleep soon, unless the operator set it otherwise.

    Source: our measurement, SmolLM2 fp32 on 2 cores. Alone, a decode step takes 42 ms, as with
    libgomp's own spin count, and 59 ms with the passive policy; beside two busy processes 93 ms,
    where libgomp's own takes seconds.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def _die_with_parent(parent: int) -> None:
    """End when the parent ends: by signal on Linux, by end of file on stdin everywhere."""
    threading.Thread(target=_exit_on_eof, daemon=True).start()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(EXIT_UNUSABLE)


def _exit_on_eof() -> None:
    while os.read(0, 4096):
        pass
    os._exit(EXIT_UNUSABLE)


def _load_engine(config: EngineConfig) -> "Engine":
    from prefix_layer.engine import Engine  # noqa: PLC0415  torch loads for seconds

    return Engine(config)


if __name__ == "__main__":
    sys.exit(main(_load_engine))
