"""The engine process's loop, over a real socket, with an engine that has no model."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zmq

from prefix_layer.config import EngineConfig
from prefix_layer.messages import (
    Abort,
    Command,
    EngineStats,
    Event,
    Failed,
    Generate,
    GetStats,
    Hello,
    Ready,
    Reset,
    Sampling,
    Tokens,
)
from prefix_layer.process import MAX_FAILED_STEPS, EngineSocket, Server
from tests.fakes.engine import ADD_RAISES, REFUSED, STEP_RAISES, FakeEngine


class Line:
    """Both ends of one socket; `turn` runs the loop once."""

    def __init__(self, folder: Path) -> None:
        self.engine = FakeEngine(EngineConfig(folder))
        self.socket = EngineSocket(str(folder / "s"))
        self.server = Server(self.engine, self.socket)
        self.context = zmq.Context()
        self.peer = self.context.socket(zmq.DEALER)
        self.peer.connect(f"ipc://{folder / 's'}")

    def send(self, command: Command) -> None:
        self.peer.send(msgspec.msgpack.encode(command))

    def turn(self) -> None:
        self.server.turn(timeout_ms=5000)

    def events(self) -> list[Event]:
        assert self.peer.poll(5000), "the engine said nothing"
        return msgspec.msgpack.decode(self.peer.recv(), type=list[Event])

    def close(self) -> None:
        self.peer.close(linger=0)
        self.context.term()
        self.socket.close()


@pytest.fixture
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    line = Line(tmp_path_factory.mktemp("s"))
    yield line
    line.close()


def generate(request_id: str, *prompt: int, max_tokens: int = 3) -> Generate:
    return Generate(request_id, list(prompt), Sampling(max_tokens))


def test_hello_is_answered_by_ready_when_loaded(line: Line) -> None:
    """Whoever says hello learns what was loaded."""
    line.send(Hello("h"))
    line.turn()
    assert line.events() == [msgspec.structs.replace(line.engine.ready, request_id="h")]
    assert isinstance(line.engine.ready, Ready)


def test_tokens_arrive_one_step_at_a_time_when_generating(line: Line) -> None:
    """Each step sends its tokens at once, the last with a finish reason."""
    line.send(generate("a", 7, 8))
    line.turn()
    assert line.events() == [Tokens("a", [7])]
    line.turn()
    assert line.events() == [Tokens("a", [8])]
    line.turn()
    assert line.events() == [Tokens("a", [7], None, "length")]
    assert not line.engine.has_work


def test_no_further_step_is_made_when_aborted(line: Line) -> None:
    """An abort that waits in the socket is obeyed before the next step."""
    line.send(generate("a", 7, max_tokens=1000))
    line.turn()
    line.events()
    line.send(Abort("a"))
    line.send(GetStats("s"))
    while line.engine.has_work:
        line.turn()
    steps = line.engine.num_steps
    stats = line.events()
    while not isinstance(stats[0], EngineStats):
        stats = line.events()
    assert stats[0].num_running == 0
    assert steps < 1000


def test_refusal_is_sent_when_the_engine_cannot_run_a_request(line: Line) -> None:
    """A request that can never run fails at once, as does one that breaks the engine's intake."""
    line.send(generate("a", REFUSED))
    line.turn()
    assert line.events() == [Failed("a", "no room", "kv_exhausted")]
    line.send(generate("b", ADD_RAISES))
    line.turn()
    assert line.events() == [Failed("b", "odd command", "engine_error")]


def test_all_in_flight_fail_and_the_next_works_when_a_step_raises(line: Line) -> None:
    """A broken step ends what is in flight, and nothing else."""
    line.send(generate("a", STEP_RAISES))
    line.turn()
    assert line.events() == [Failed("a", "step broke", "engine_error")]
    assert not line.engine.has_work
    line.send(generate("b", 5, max_tokens=1))
    line.turn()
    assert line.events() == [Tokens("b", [5], None, "length")]


def test_the_loop_ends_when_steps_keep_raising(line: Line) -> None:
    """An engine whose steps fail in a row is given up."""
    for attempt in range(MAX_FAILED_STEPS - 1):
        line.send(generate(f"a{attempt}", STEP_RAISES))
        line.turn()
    line.send(generate("last", STEP_RAISES))
    with pytest.raises(RuntimeError, match="step broke"):
        line.turn()


def test_reset_is_answered_by_stats_when_asked(line: Line) -> None:
    """A reset answers with what is left."""
    line.send(Reset("r"))
    line.turn()
    (stats,) = line.events()
    assert isinstance(stats, EngineStats)
    assert stats.request_id == "r"
