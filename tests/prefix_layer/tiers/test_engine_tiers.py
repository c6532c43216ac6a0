"""An engine with tiers gives the same tokens as one without, and computes less."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import DeepseekV3Config

from prefix_layer.engine import Engine
from prefix_layer.messages import Probe
from tests.prefix_layer.driving import drive, greedy, make_engine, next_logits, solo

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


def test_nothing_is_found_when_reset(make: MakeEngine, tiers: dict[str, Any]) -> None:
    """A reset is of the pool and of all tiers."""
    engine = make(**tiers)
    prompt = tokens(81, 2)
    solo(engine, prompt, 4)
    push_out(engine)
    engine.reset()
    kept = engine.stats("").bytes_by_tier
    assert {tier: kept.get(tier, 0) for tier in ("device", "host", "disk")} == {
        "device": 0,
        "host": 0,
        "disk": 0,
    }
    assert solo(engine, prompt, 4).num_cached_tokens == 0


def test_another_tenant_finds_nothing_when_blocks_are_in_a_tier(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """Salts separate tenants below the pool as they do in it."""
    engine = make(**tiers)
    prompt = tokens(81, 3)
    mine = [greedy("mine", prompt, salt=b"a")]
    drive(engine, mine)
    push_out(engine)
    assert drive(engine, [greedy("other", prompt, salt=b"b")])["other"].num_cached_tokens == 0
    push_out(engine)
    assert drive(engine, mine)["mine"].num_cached_tokens == 80


def test_counts_add_up_when_tokens_come_from_everywhere(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """Every prompt and generated token has one source."""
    engine = make(**tiers)
    lengths = [40, 81, 33, 81, 40, 81]
    prompts = [tokens(length, length) for length in lengths]
    for prompt in prompts:
        solo(engine, prompt, 3)
    by_source = engine.stats("").tokens_by_source
    assert sum(by_source.values()) == sum(lengths) + 2 * len(lengths)
    assert by_source["device"] < by_source["computed"]


def test_blocks_are_whole_when_sequences_are_aborted_while_loading(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """An abort in any state lets go of what was on its way."""
    engine = make(**tiers)
    prompts = [tokens(81, seed) for seed in range(4, 9)]
    expected = [solo(engine, prompt, 3).token_ids for prompt in prompts]
    for round_ in range(6):
        for i, prompt in enumerate(prompts):
            engine.add(greedy(f"{round_}-{i}", prompt, 3))
        for _ in range(round_):
            engine.step()
            engine.check_invariants()
        for i in range(len(prompts)):
            engine.abort(f"{round_}-{i}")
            engine.check_invariants()
    assert [solo(engine, prompt, 3).token_ids for prompt in prompts] == expected


def test_a_probe_names_the_tier_when_blocks_have_left_the_pool(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """What a request would find is said by tier, without loading it."""
    engine = make(**tiers)
    prompt = tokens(81, 9)
    solo(engine, prompt, 1)
    push_out(engine)
    until_quiet(engine)
    before = engine.stats("").tokens_by_source
    probed = engine.probe(Probe("p", prompt, b""))
    expected = "host" if tiers["host_kv_bytes"] else "disk"
    assert probed.num_cached_tokens == 80
    assert probed.tokens_by_tier[expected] >= 60
    assert engine.stats("").tokens_by_source == before


def test_reused_blocks_are_on_disk_when_they_never_left_the_pool(
    make: MakeEngine, tmp_path: Path
) -> None:
    """What was used twice outlives the engine; what was used once is not worth the write."""
    engine = make(disk_kv_bytes=MUCH, kv_dir=tmp_path)
    solo(engine, tokens(21, 10), 1)
    engine.rest()
    until_quiet(engine)
    assert engine.stats("").bytes_by_tier["disk"] == 0
    solo(engine, tokens(21, 10), 1)
    engine.rest()
    until_quiet(engine)
    assert engine.stats("").bytes_by_tier["disk"] > 0
    other = make(disk_kv_bytes=MUCH, kv_dir=tmp_path)
    assert solo(other, tokens(21, 10), 1).num_cached_tokens == 20


@pytest.mark.parametrize("fault", ["a file", "no such right"])
def test_requests_go_on_when_the_folder_cannot_be_used(
    make: MakeEngine, tmp_path: Path, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The tier is off with one line; the engine starts and answers."""
    folder = tmp_path / "kv"
    if fault == "a file":
        folder.write_text("not a folder")
    else:
        folder = Path("/proc/strata-kv")
    engine, plain = make(disk_kv_bytes=MUCH, kv_dir=folder), make()
    assert len([r for r in caplog.records if "disk KV is off" in r.message]) == 1
    assert solo(engine, tokens(50, 1)).token_ids == solo(plain, tokens(50, 1)).token_ids


def test_answers_stay_close_when_kept_in_eight_bits(
    make: MakeEngine, tiers: dict[str, Any]
) -> None:
    """Rounded KV moves logits a little; it is never mixed with exact KV."""
    engine, exact = make(**tiers, kv_codec="int8"), make(**tiers)
    prompt = tokens(81, 12)
    expected = next_logits(engine, prompt)
    push_out(engine)
    actual = next_logits(engine, prompt)
    difference = float((expected - actual).norm() / expected.norm())
    assert 0 < difference < 0.1
    assert solo(exact, prompt, 1).num_cached_tokens == 0


def test_latent_layers_come_back_when_widths_differ(
    make_tiny: Callable[..., Path], tmp_path: Path
) -> None:
    """Whatever the pool holds is kept: here latents, whose keys and values are of unlike width."""
    folder = make_tiny(
        DeepseekV3Config,
        q_lora_rank=16,
        kv_lora_rank=8,
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=6,
        num_key_value_heads=4,
        first_k_dense_replace=3,
    )
    settings = {"kv_tokens": 128, "kv_load": "always", "disk_kv_bytes": MUCH, "kv_dir": tmp_path}
    engine = make_engine(folder, **settings)
    prompt = tokens(81, 13)
    first = solo(engine, prompt, 8)
    push_out(engine)
    until_quiet(engine)
    again = solo(engine, prompt, 8)
    engine.close()
    assert again.num_cached_tokens == 80
    assert again.token_ids == first.token_ids


def until_quiet(engine: Engine) -> None:
    """Let the disk's thread finish what it was given."""
    assert engine._tiers is not None
    if engine._tiers._worker is not None:
        while engine._tiers._writing or engine._tiers._reading:
            engine._tiers.wait(1.0)
            engine._tiers.begin_step()


def test_bytes_follow_when_others_empty_the_folder(make: MakeEngine, tmp_path: Path) -> None:
    """What stats say of a shared folder is what is in it, whoever changed it."""
    engine = make(disk_kv_bytes=MUCH, kv_dir=tmp_path)
    solo(engine, tokens(81, 3), 2)
    push_out(engine)
    until_quiet(engine)
    assert engine.stats("").bytes_by_tier["disk"] > 0
    for path in tmp_path.glob("*/*/*.kv"):
        path.unlink()
    engine._tiers._look_from_s = 0.0  # type: ignore[union-attr]
    assert engine.stats("").bytes_by_tier["disk"] == 0
