"""What routers hear of an engine's blocks."""

import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq

from prefix_layer.engine import Engine
from prefix_layer.errors import ModelLoadError
from prefix_layer.kv_events import Cleared, EventBatch, Evicted, KvEvents, Stored
from prefix_layer.messages import Probe, Warm
from tests.prefix_layer.driving import make_engine, solo

SIZE = 4
WAIT_MS = 5000
PROMPT = list(range(10, 60))


class Router:
    """Keeps the set of blocks that the engine is said to hold."""

    def __init__(self, path: Path) -> None:
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"kv")
        self.socket.connect(f"ipc://{path}")
        self.decoder = msgspec.msgpack.Decoder(EventBatch)
        self.batches: list[EventBatch] = []
        self.held: set[bytes] = set()
        self.parents: dict[bytes, bytes | None] = {}

    def read(self, timeout_ms: int = 200) -> list[EventBatch]:
        """Read what has come, waiting a moment for the first."""
        read: list[EventBatch] = []
        while self.socket.poll(timeout_ms):
            timeout_ms = 50
            topic, number, payload = self.socket.recv_multipart()
            batch = self.decoder.decode(payload)
            assert topic == b"kv"
            assert int.from_bytes(number, "big") == batch.sequence
            read.append(batch)
            for event in batch.events:
                self._apply(event)
        self.batches += read
        return read

    def _apply(self, event: Stored | Evicted | Cleared) -> None:
        match event:
            case Stored():
                parents = [event.parent_hash, *event.hashes[:-1]]
                self.parents.update(zip(event.hashes, parents, strict=True))
                self.held.update(event.hashes)
                assert event.num_tokens == len(event.hashes) * event.block_size
            case Evicted():
                assert set(event.hashes) <= self.held, "a block left that never came"
                self.held -= set(event.hashes)
            case Cleared():
                self.held.clear()

    def close(self) -> None:
        self.socket.close(linger=0)
        self.context.term()


@pytest.fixture
def engine(tiny_llama: Path, tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(tiny_llama, kv_tokens=256, kv_events=tmp_path / "events")
    yield engine
    engine.close()


@pytest.fixture
def router(engine: Engine, tmp_path: Path) -> Iterator[Router]:
    router = Router(tmp_path / "events")
    for i in range(50):  # until the subscription has arrived
        solo(engine, [i + 200, i + 1, i, i + 3, i], 1)
        if router.read(timeout_ms=100):
            break
    engine.reset()
    assert router.read(WAIT_MS)
    yield router
    router.close()


def whole_blocks(engine: Engine) -> dict[bytes, bytes | None]:
    return {
        block.block_hash: None if block.parent is None else block.parent.block_hash
        for block in engine._pool.index
        if block.block_hash is not None and len(block.token_ids) == SIZE
    }


def test_router_knows_every_whole_block_when_traffic_has_passed(
    engine: Engine, router: Router
) -> None:
    """After stores, evictions, pins and a reset the router's view is the engine's own."""
    for i in range(12):
        solo(engine, [*PROMPT[: 8 * (i % 4)], *range(100 + i, 130 + i)], 6)
        engine.step()
        router.read(WAIT_MS)
        assert router.held == set(whole_blocks(engine))
    assert engine.stats("").evictions_by_tier["device"] > 0
    known = whole_blocks(engine)
    assert {own: router.parents[own] for own in known} == known
    sequences = [batch.sequence for batch in router.batches]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    assert len({batch.engine_id for batch in router.batches}) == 1
    engine.add(Warm("w", PROMPT, pin=True))
    while engine.has_work:
        engine.step()
    engine.reset(keep_pinned=True)
    router.read(WAIT_MS)
    assert router.held == set(whole_blocks(engine)) != set()
    engine.reset()
    router.read(WAIT_MS)
    assert router.held == set()
    assert router.batches[-1].events == [Cleared()]


def test_prompt_is_one_event_when_its_blocks_follow_each_other(
    engine: Engine, router: Router
) -> None:
    """A chain is told as one run with the hash that it follows."""
    solo(engine, PROMPT, 1)
    events = [event for batch in router.read(WAIT_MS) for event in batch.events]
    (run,) = [event for event in events if isinstance(event, Stored)]
    assert (len(run.hashes), run.parent_hash, run.num_tokens) == (12, None, 48)
    solo(engine, [*PROMPT[:32], *range(100, 110)], 1)
    (branch,) = [event for batch in router.read(WAIT_MS) for event in batch.events]
    assert isinstance(branch, Stored)
    assert branch.parent_hash == run.hashes[7]


def test_engine_goes_on_when_a_subscriber_never_reads(engine: Engine, router: Router) -> None:
    """Messages are dropped, not waited for; the gap in the numbers tells the subscriber."""
    events = engine._events
    assert isinstance(events, KvEvents)
    for _ in range(30_000):
        events.cleared()
        events.publish()
    assert solo(engine, PROMPT, 4).finish_reason == "length"
    assert engine.probe(Probe("p", PROMPT)).num_cached_tokens == len(PROMPT) - 1
    read = router.read(WAIT_MS)
    assert 0 < len(read) < 30_000


@pytest.mark.usefixtures("engine")
def test_only_this_user_may_listen_when_events_are_on(tmp_path: Path) -> None:
    """Hashes tell who asks the same, so the socket is private."""
    mode = stat.S_IMODE((tmp_path / "events").stat().st_mode)
    assert mode & 0o077 == 0


def test_one_line_names_the_setting_when_the_socket_cannot_be(
    tiny_llama: Path, tmp_path: Path
) -> None:
    """A path too long for a socket stops the start."""
    with pytest.raises(ModelLoadError, match=r"local\.kv_events"):
        make_engine(tiny_llama, kv_events=tmp_path / ("x" * 200))


def test_nothing_is_bound_when_events_are_off(tiny_llama: Path) -> None:
    """Without the setting nobody is told anything."""
    assert make_engine(tiny_llama)._events is None
