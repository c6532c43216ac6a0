"""What the store tests lay their hands on: entries, points, a clock, a slow wire."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Self

import numpy as np

from semantic_layer.entry import Entry
from semantic_layer.stores.vector_index import Point, Vector

DIM = 8


class Clock:
    """Unix seconds that pass only when told to."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make_entry(entry_id: str, clock: Clock, *, ttl_s: float = 600.0, **fields: Any) -> Entry:
    values: dict[str, Any] = {
        "tenant": "public",
        "namespace": "",
        "model": "m",
        "model_fingerprint": "f",
        "answer": f"answer {entry_id}".encode(),
        "created_at": clock.now,
        "expires_at": clock.now + ttl_s,
    }
    return Entry(entry_id=entry_id, **(values | fields))


def unit(*values: float) -> Vector:
    """A unit vector that starts with these values and goes on with zeros, ``(DIM,)``."""
    vector = np.zeros(DIM, dtype=np.float32)
    vector[: len(values)] = values
    return vector / np.float32(np.linalg.norm(vector))


def make_point(entry_id: str, vector: Vector, **fields: Any) -> Point:
    values: dict[str, Any] = {
        "tenant": "public",
        "scope": "s",
        "intent": None,
        "expires_at": 1_800_000_600.0,
        "tags": (),
    }
    return Point(entry_id=entry_id, vector=vector, **(values | fields))


class SlowWire:
    """A socket in front of another that holds each reply back for ``delay_s``; counts its links."""

    def __init__(self, server: Path, path: Path) -> None:
        self.delay_s = 0.0
        self.num_links = 0
        self.path = path
        self._server = server
        self._listener: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_unix_server(self._link, self.path)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._listener is not None
        self._listener.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self.num_links += 1
        back, forth = await asyncio.open_unix_connection(self._server)
        try:
            await asyncio.gather(
                self._pump(reader, forth, slow=False), self._pump(back, writer, slow=True)
            )
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for stream in (writer, forth):
                stream.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await stream.wait_closed()
            self._links.discard(task)

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, slow: bool
    ) -> None:
        while data := await source.read(65536):
            if slow and self.delay_s:
                await asyncio.sleep(self.delay_s)
            sink.write(data)
            await sink.drain()
        sink.close()
