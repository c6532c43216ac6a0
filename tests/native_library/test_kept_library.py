"""A compiled library is there for the next start, and no other one is ever loaded."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from native_library import KeptLibrary

COMMAND = ["cc", "-shared", "-fPIC"]

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "strata" / "native"


def source_of(folder: Path, number: int) -> Path:
    source = folder / "answer.c"
    source.write_text(f"int answer(void) {{ return {number}; }}\n")
    return source


def built_from(source: Path) -> Path:
    built = source.with_suffix(".so")
    subprocess.run([*COMMAND, str(source), "-o", str(built)], check=True)
    return built


def kept_of(source: Path) -> KeptLibrary:
    return KeptLibrary("answer", [source], [str(shutil.which("cc")), *COMMAND[1:]])


def answer_of(library: ctypes.CDLL | None) -> int | None:
    return None if library is None else int(library.answer())


def test_library_is_loaded_when_it_was_kept(tmp_path: Path) -> None:
    """Nothing is there at first; a changed source or command is another library."""
    source = source_of(tmp_path, 41)
    kept = kept_of(source)
    assert kept.load() is None
    kept.keep(built_from(source))
    assert answer_of(kept_of(source).load()) == 41
    assert KeptLibrary("answer", [source], [str(shutil.which("cc")), "-O2"]).load() is None
    assert kept_of(source_of(tmp_path, 42)).load() is None


def test_nothing_is_loaded_when_others_may_have_written_it(tmp_path: Path, cache: Path) -> None:
    """A folder or file that others can write to holds nothing of ours."""
    source = source_of(tmp_path, 41)
    kept = kept_of(source)
    kept.keep(built_from(source))
    file = next(cache.glob("*.so"))
    for place in (cache, file):
        mode = place.stat().st_mode
        place.chmod(0o777)
        assert kept.load() is None
        place.chmod(mode)
    file.rename(cache / "elsewhere")
    file.symlink_to(cache / "elsewhere")
    assert kept.load() is None


def test_nothing_is_loaded_when_the_file_is_broken(tmp_path: Path, cache: Path) -> None:
    """Half a library is as good as none, and is replaced."""
    source = source_of(tmp_path, 41)
    kept = kept_of(source)
    kept.keep(built_from(source))
    next(cache.glob("*.so")).write_bytes(b"\x7fELF")
    assert kept.load() is None
    kept.keep(built_from(source))
    assert answer_of(kept.load()) == 41
    assert not list(cache.glob("*.part"))


def test_start_goes_on_when_nothing_can_be_kept(tmp_path: Path, cache: Path) -> None:
    """Where there can be no folder, nothing is kept and nobody is told off."""
    cache.parent.parent.mkdir()
    cache.parent.write_text("in the way")
    source = source_of(tmp_path, 41)
    kept = kept_of(source)
    kept.keep(built_from(source))
    assert kept.load() is None
