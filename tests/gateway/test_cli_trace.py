"""``strata trace``: figures for people and programs, a chart, one line on bad input."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata
from prefix_layer import POLICIES

SHORT = ("--simulate", "zipf", "--requests", "5")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(strata, ["trace", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"hash_ids": [1, 2]}\n{"hash_ids": [1, 2]}\n{"hash_ids": [3, 4]}\n')
    return path


def test_shares_are_printed_as_json_when_asked_for(file: Path) -> None:
    """One row per policy and size, with the optimum."""
    result = run(str(file), "--blocks", "4", "--policy", "lru", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "trace": "trace.jsonl",
        "requests": 3,
        "blocks": 6,
        "shares": [
            {"policy": "lru", "blocks": 4, "hit_share": 2 / 6, "of_optimum": 1.0},
            {"policy": "optimum", "blocks": 4, "hit_share": 2 / 6, "of_optimum": 1.0},
        ],
    }


def test_every_policy_is_shown_when_none_is_named() -> None:
    """A simulated load needs no file."""
    result = run("--simulate", "zipf", "--requests", "200", "--blocks", "300")
    assert result.exit_code == 0, result.output
    assert [line.split()[1] for line in result.stdout.splitlines()[1:]] == [*POLICIES, "optimum"]


def test_chart_has_a_line_per_policy_when_plotted(file: Path, tmp_path: Path) -> None:
    """The file is SVG that parses."""
    plot = tmp_path / "plot.svg"
    sizes = ("--blocks", "2", "--blocks", "4")
    result = run(str(file), *sizes, "--policy", "lru", "--policy", "arc", "--plot", str(plot))
    assert result.exit_code == 0, result.output
    lines = ET.parse(plot).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 3
    assert all(len(line.attrib["points"].split()) == 2 for line in lines)


def test_progress_goes_to_stderr_when_the_trace_is_long() -> None:
    """Figures alone stand on standard output."""
    result = run(
        "--simulate",
        "temporal",
        "--requests",
        "2500",
        "--blocks",
        "500",
        "--policy",
        "lru",
        "--json",
    )
    assert "lru, 500 blocks" in result.stderr
    json.loads(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl: No such file"),
        ([*SHORT, "--plot", "plot.gif"], "plot.gif: a chart is written as .svg or .png"),
        ([], "name a FILE, or a load by --simulate"),
        (["a.jsonl", "--simulate", "zipf"], "name a FILE, or a load by --simulate"),
        (["--simulate", "zipf", "--policy", "magic"], "magic"),
        (["--simulate", "zipf", "--blocks", "0"], "0 is not in the range"),
        (
            ["--simulate", "zipf", "--requests", "5", "--plot", "/no/such/plot.svg"],
            "/no/such/plot.svg: No such",
        ),
    ],
)
def test_bad_input_ends_with_one_line(arguments: list[str], message: str) -> None:
    """The line says what is wrong."""
    result = run(*arguments)
    assert result.exit_code != 0
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert message in line


def test_png_names_what_it_needs_when_matplotlib_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any work is done, with the way to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run(*SHORT, "--plot", str(tmp_path / "plot.png"))
    assert result.exit_code != 0
    assert "Error: a .png needs matplotlib: pip install" in result.stderr
