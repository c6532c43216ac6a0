"""An engine with tiers gives the same tokens as one without, and computes less."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefix_layer.engine import Engine
from tests.prefix_layer.driving import drive, greedy, make_engine, solo

BLOCK_SIZE = 4
SMALL_POOL = 32
MUCH = 1 << 26

MakeEngine = Callable[..., Engine]


def tokens(length: int, seed: int) -> list[int]:
    return [(seed * 31 + i * 7 + i * i * seed) % 300 + 10 for i in range(length)]


@pytest.fixture
def make(tiny_llama: Path) -> Iterator[MakeEngine]:
    """Make engines whose pool holds little more than one prompt; they are closed at the end."""
    made: list[Engine] = []

    def start(**settings: Any) -> Engine:
        small = {"kv_tokens": SMALL_POOL * BLOCK_SIZE, "kv_load": "always"}
        made.append(make_engine(tiny_llama, **(small | settings)))
        return made[-1]

    yield start
    for engine in made:
        engine.close()


@pytest.fixture(params=["host", "disk", "both"])
def tiers(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    host = 0 if request.param == "disk" else MUCH
    disk = 0 if request.param == "host" else MUCH
    return {"host_kv_bytes": host, "disk_kv_bytes": disk, "kv_dir": tmp_path / "kv"}


def push_out(engine: Engine) -> None:
    """Fill the pool with something else."""
    solo(engine, tokens(100, 77), 4)
    solo(engine, tokens(100, 78), 4)


def test_tokens_are_equal_and_cached_when_blocks_come_back(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """A prompt that has left the device is loaded, and its answer is the same."""
    engine, plain = make(**tiers), make()
    prompt = tokens(81, 1)
    first = solo(engine, prompt, 12)
    push_out(engine)
    again = solo(engine, prompt, 12)
    assert first.token_ids == again.token_ids == solo(plain, prompt, 12).token_ids
    assert again.num_cached_tokens == 80
    loaded = engine.stats("").tokens_by_source
    assert loaded.get("host", 0) + loaded.get("disk", 0) >= 80


def test_all_answers_are_right_when_many_share_and_overflow(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """Concurrent prompts with common starts through a pool that holds few of them."""
    engine, plain = make(**tiers), make(kv_tokens=4096)
    commands = [greedy(str(i), tokens(40, i % 3) + tokens(10 + i, 50 + i), 6) for i in range(12)]
    expected = drive(plain, commands)
    for _ in range(3):
        answers = drive(engine, commands)
        assert {n: a.token_ids for n, a in answers.items()} == {
            n: a.token_ids for n, a in expected.items()
        }
