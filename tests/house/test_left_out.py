"""A test run says what it could not do, and under CI that is a failure."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

def test_runs(): pass

def test_needs_a_program(): pytest.skip("no-such-program is not installed")
"""


def run(folder: Path, ci: str | None, tests: str = TESTS) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_bytes((ROOT / "tests/conftest.py").read_bytes())
    (folder / "test_some.py").write_text(tests)
    environ = {name: value for name, value in os.environ.items() if name != "CI"}
    environ |= {"PYTHONPATH": str(ROOT), **({} if ci is None else {"CI": ci})}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("ci", [None, "", "0", "false"])
def test_a_left_out_test_is_named_when_the_run_passes(tmp_path: Path, ci: str | None) -> None:
    """On a user's machine a missing program is no failure, but no secret either."""
    result = run(tmp_path, ci)
    assert result.returncode == 0, result.stdout
    assert "left out: 1" in result.stdout
    assert "test_needs_a_program: Skipped: no-such-program is not installed" in result.stdout


@pytest.mark.parametrize("ci", ["1", "true"])
def test_the_run_fails_when_something_is_left_out_under_ci(tmp_path: Path, ci: str) -> None:
    """Every machine that gives a verdict has every program."""
    result = run(tmp_path, ci)
    assert result.returncode == 1
    assert "nothing may be left out" in result.stdout


def test_the_run_passes_when_nothing_is_left_out_under_ci(tmp_path: Path) -> None:
    """The rule is about what is missing, not about CI."""
    assert run(tmp_path, "1", "def test_runs(): pass").returncode == 0


def test_what_no_processor_here_can_run_is_named_too(tmp_path: Path) -> None:
    """No program could be installed for it, so it fails no run."""
    marked = "import pytest\n\n@pytest.mark.cpu_flag('of-no-cpu')\ndef test_x(): pass\n"
    result = run(tmp_path, "1", f"{marked}\ndef test_runs(): pass")
    assert result.returncode == 0, result.stdout
    assert "not for this processor: 1" in result.stdout
    assert "test_some.py::test_x" in result.stdout
