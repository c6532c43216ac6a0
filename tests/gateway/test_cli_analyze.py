"""``strata analyze`` over the real engine and the bundled model."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.bundled import BundledModels
from gateway.cli import strata
from gateway.scenarios import SCENARIOS

pytestmark = pytest.mark.usefixtures("bundled_models")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(strata, ["analyze", *arguments])


@pytest.fixture(autouse=True)
def models_named(bundled_models: BundledModels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_MODELS_DIR", str(bundled_models.chat_path.parent))


@pytest.mark.slow
def test_hits_are_found_where_prompts_repeat_when_scenarios_run() -> None:
    """Shared text hits, shuffled passages don't, and every scenario tells its figures."""
    size = ("--requests", "3", "--words", "40", "--seeds", "1", "--limit", "200")
    result = run("scenarios", *size, "--json")
    assert result.exit_code == 0, result.output
    figures: dict[str, dict[str, Any]] = json.loads(result.stdout)
    assert list(figures) == list(SCENARIOS)
    for outcome in figures.values():
        assert outcome["requests"] == outcome["hits"] + outcome["misses"] == 3
        assert 0 <= outcome["cached_tokens"] < outcome["prompt_tokens"]
        assert outcome["evictions"] == 0
        assert not outcome["cut"]
        assert (outcome["ttft_hit_s"] is None) == (outcome["hits"] == 0)
    share = {name: outcome["hit_share"] for name, outcome in figures.items()}
    assert share["rag-shared"] > 0.5 > share["single-turn"]
    assert share["rag-shared"] > share["rag-shuffled"]
    assert share["agent-loop"] > 0.5
    assert figures["multi-turn"]["misses"] == 2
    for name, outcome in figures.items():
        assert outcome["hit_share"] <= outcome["allowed_share"] <= outcome["mended_share"], name
        at_once = 0.02 if name == "template-batch" else 0  # what is in flight is shared by blocks
        assert outcome["allowed_share"] - outcome["hit_share"] <= at_once, name
    causes = {name: [mend["cause"] for mend in o["mends"]] for name, o in figures.items()}
    assert causes["rag-shuffled"] == ["retrieval_order"]
    assert causes["rag-shared"] == causes["multi-turn"] == causes["agent-loop"] == []


@pytest.mark.slow
def test_mends_are_told_when_the_pool_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the prompts allow and the deployment does not give is the deployment's to mend."""
    monkeypatch.setenv("STRATA_LOCAL__KV_TOKENS", "400")
    size = ("--requests", "4", "--words", "120", "--seeds", "1", "--limit", "200")
    result = run("scenarios", "multi-turn", *size)
    assert result.exit_code == 0, result.output
    assert "evicted (multi-turn): enlarge the pool" in " ".join(result.stdout.split())


def test_scenario_is_cut_when_the_time_is_over() -> None:
    """Nothing is run, and that is said; what was not run is not called free of faults."""
    result = run("scenarios", "multi-turn", "--limit", "0.000001")
    assert result.exit_code == 0, result.output
    assert "multi-turn (cut)" in result.stdout
    assert "nothing to mend" not in result.stdout
    assert "not judged in full" in result.stdout


@pytest.mark.slow
def test_speed_and_memory_are_shown_when_nothing_is_named() -> None:
    """TTFT falls and speed-up rises with the hit share, below the ideal."""
    result = run("--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["memory"]["bytes_per_token"] == 46_080
    assert figures["memory"]["tokens_that_fit"] == 23_296
    rows = [row for row in figures["rows"] if row["prompt_tokens"] == 2000]
    assert [row["hit_share"] for row in rows] == [0, 0.25, 0.5, 0.75, 0.9]
    assert [row["ttft_s"] for row in rows] == sorted((row["ttft_s"] for row in rows), reverse=True)
    assert rows[0]["speed_up"] == 1
    assert all(row["total_s"] > row["ttft_s"] > 0 for row in rows)


def test_memory_is_shown_for_any_configuration(tmp_path: Path) -> None:
    """A config.json alone is enough; the codec and the block size count."""
    config = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "dtype": "bfloat16",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    result = run("memory", str(tmp_path), "--block-size", "32", "--codec", "int8", "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert figures["kind"] == "GQA"
    assert figures["bytes_per_token"] == 2 * 2 * 2 * (8 + 4)
    assert figures["bytes_per_block"] == 32 * figures["bytes_per_token"]
    plain = run("memory", str(tmp_path / "config.json"), "--context", "100")
    assert "bytes of context         12,800" in plain.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["memory", "/no/such/folder"], "/no/such/folder: No such file"),
        (["memory", "--dtype", "int3"], "int3"),
        (["speed", "--hit", "1"], "1.0 is not in the range"),
        (["speed", "--prompt", "0"], "0 is not in the range"),
        (["scenarios", "magic"], "magic"),
    ],
)
def test_bad_input_ends_with_one_line(arguments: list[str], message: str) -> None:
    """The line says what is wrong."""
    result = run(*arguments)
    assert result.exit_code != 0
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line


def test_no_engine_is_measured_when_there_is_no_local_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line instead of an engine that can't start."""
    monkeypatch.setenv("STRATA_LOCAL__MODEL", "none")
    for part in ("speed", "scenarios"):
        result = run(part)
        assert result.exit_code == 1
        assert "Error: local.model is none" in result.stderr
