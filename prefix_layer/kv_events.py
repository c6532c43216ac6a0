"""Tells routers which blocks this engine holds, on a local socket.

A ZeroMQ PUB socket with one message per step that changed something, three frames: the topic
`TOPIC`, the sequence number (8 bytes, big-endian, from 0), and a msgpack `EventBatch`. A subscriber
that reads too slowly loses messages, which it sees by a gap in the numbers; the engine never waits.
A new ``engine_id`` means that the engine started anew and holds nothing.
Source: vLLM's KV cache events (kv_events.py, 0.10) for what a router needs; the names are ours.
"""

import os
import secrets
import time
from pathlib import Path

import msgspec
import zmq

from prefix_layer.block import Block
from prefix_layer.block_events import Departure
from prefix_layer.errors import ModelLoadError

TOPIC = b"kv"
MAX_QUEUED = 10_000  # messages per subscriber


class Stored(msgspec.Struct, frozen=True, tag="stored"):
    """Whole blocks that can be reused from now on, each the parent of the next.

    ``parent_hash`` is what the first one follows; None at the start of a prompt. ``num_tokens``
    counts the tokens of all of them.
    """

    hashes: list[bytes]
    parent_hash: bytes | None
    num_tokens: int
    block_size: int
    tier: str = "device"


class Evicted(msgspec.Struct, frozen=True, tag="evicted"):
    """Blocks that left a tier."""

    hashes: list[bytes]
    tier: str = "device"


class Cleared(msgspec.Struct, frozen=True, tag="cleared"):
    """A tier holds nothing any more."""

    tier: str = "device"


KvEvent = Stored | Evicted | Cleared


class EventBatch(msgspec.Struct, frozen=True):
    """What one step changed, in order; ``time_s`` is Unix time."""

    engine_id: str
    sequence: int
    time_s: float
    events: list[KvEvent]


class KvEvents:
    """Listens to a block pool and publishes; only whole blocks are told, tails are not.

    Raises:
        ModelLoadError: the socket can't be bound; names the setting.
    """

    def __init__(self, path: Path, block_size: int) -> None:
        self._engine_id = secrets.token_hex(8)
        self._block_size = block_size
        self._pending: list[KvEvent] = [Cleared()]
        self._sequence = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, MAX_QUEUED)
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            _bind(self._socket, path)
        except ModelLoadError:
            self.close()
            raise

    def stored(self, block: Block) -> None:
        """Take note of a block; a run of them becomes one event."""
        if len(block.token_ids) != self._block_size:
            return
        assert block.block_hash is not None
        parent_hash = None if block.parent is None else block.parent.block_hash
        last = self._pending[-1] if self._pending else None
        if isinstance(last, Stored) and last.hashes[-1] == parent_hash:
            hashes = [*last.hashes, block.block_hash]
            first_parent = last.parent_hash
            self._pending.pop()
        else:
            hashes, first_parent = [block.block_hash], parent_hash
        size = self._block_size
        self._pending.append(Stored(hashes, first_parent, len(hashes) * size, size))

    def removed(self, block: Block, why: Departure) -> None:  # noqa: ARG002 - all are gone
        """Take note of a block that goes."""
        if len(block.token_ids) != self._block_size:
            return
        assert block.block_hash is not None
        last = self._pending[-1] if self._pending else None
        if isinstance(last, Evicted):
            last.hashes.append(block.block_hash)
        else:
            self._pending.append(Evicted([block.block_hash]))

    def cleared(self) -> None:
        """Take note that nothing is left; that says all that this step changed."""
        self._pending = [Cleared()]

    def publish(self) -> None:
        """Send what has changed; what a subscriber has no room for is dropped."""
        if not self._pending:
            return
        batch = EventBatch(self._engine_id, self._sequence, time.time(), self._pending)
        number = self._sequence.to_bytes(8, "big")
        self._socket.send_multipart([TOPIC, number, self._encoder.encode(batch)], zmq.NOBLOCK)
        self._sequence += 1
        self._pending = []

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
        self._context.term()


def _bind(socket: "zmq.Socket[bytes]", path: Path) -> None:
    """Bind to a path that only this user may open."""
    mask = os.umask(0o077)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        socket.bind(f"ipc://{path}")
    except (zmq.ZMQError, OSError) as error:
        raise ModelLoadError(f"local.kv_events: no socket at {path}: {error}") from error
    finally:
        os.umask(mask)
