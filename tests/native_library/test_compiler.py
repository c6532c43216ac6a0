"""C sources become a library once; a machine that can make none says why."""

import shutil
import subprocess
from pathlib import Path

import pytest

from native_library import CannotCompile, compiled, function

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a source that adds two whole numbers."""
    made = tmp_path / "sources"
    made.mkdir()
    (made / "add.c").write_text("int add(int a, int b) { return a + b + MORE; }\n")
    return made


def added(folder: Path, more: int) -> int:
    library = compiled("add", folder, ["add.c"], [f"-DMORE={more}"])
    return int(function(library, "add", "ii")(40, 2))


@needs_compiler
def test_functions_can_be_called_when_sources_were_compiled(folder: Path) -> None:
    """Flags are part of what is made; a changed header or source makes another library."""
    assert added(folder, 0) == 42
    assert added(folder, 1) == 43
    (folder / "add.c").write_text("int add(int a, int b) { return a - b + MORE; }\n")
    assert added(folder, 0) == 38


@needs_compiler
def test_nothing_is_compiled_when_an_earlier_start_did(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second start takes the library of the first."""
    assert added(folder, 0) == 42

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(subprocess, "run", refuse)
    assert added(folder, 0) == 42


def test_reason_is_told_when_nothing_can_be_compiled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a compiler, or with one that fails."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(CannotCompile, match="there is no C compiler"):
        added(folder, 0)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/false")
    with pytest.raises(CannotCompile, match="/bin/false"):
        added(folder, 0)
