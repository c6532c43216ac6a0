"""Bundled models made ready for use: converted once, checked, then trusted by their manifest."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gateway.bundled.catalogue import BUNDLED, CHAT, EMBEDDER, BundledModel
from gateway.bundled.errors import CannotWrite, ModelUnsound
from gateway.bundled.lock import folder_lock
from gateway.bundled.manifest import Manifest, read_manifest, record_files, write_manifest

Progress = Callable[[str], None]

_UNFINISHED_PREFIX = ".unfinished-"


@dataclass(frozen=True, slots=True)
class BundledModels:
    """Folders of the prepared models."""

    chat_path: Path
    embedder_path: Path


@dataclass(frozen=True, slots=True)
class ModelState:
    """What lies in the models folder for one bundled model.

    ``stale`` means made from another source or by another converter, ``damaged`` that files are
    missing or cut; both are made anew by `prepare`.
    """

    model_id: str
    path: Path
    state: Literal["ready", "absent", "stale", "damaged"]
    num_bytes: int


def silent(_: str) -> None:
    """Report no progress."""


def prepare(models_dir: Path, progress: Progress = silent) -> BundledModels:
    """Make both bundled models ready; a second call reads two manifests and no weights.

    Raises:
        BundledModelError: with one clear line.
    """
    return BundledModels(
        chat_path=prepare_model(CHAT, models_dir, progress),
        embedder_path=prepare_model(EMBEDDER, models_dir, progress),
    )


def prepare_model(model: BundledModel, models_dir: Path, progress: Progress = silent) -> Path:
    """Make one bundled model ready and return its folder.

    Raises:
        BundledModelError: with one clear line.
    """
    folder = models_dir / model.model_id
    if _is_ready(model, folder):
        return folder
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with folder_lock(models_dir, lambda: progress("waiting for another process")):
            if not _is_ready(model, folder):
                _make(model, folder, progress)
    except OSError as error:
        raise CannotWrite(f"cannot prepare models in {models_dir}: {error.strerror}") from error
    return folder


def inspect(models_dir: Path) -> list[ModelState]:
    """Say for each bundled model what lies in the folder; reads no weights."""
    return [_state(model, models_dir / model.model_id) for model in BUNDLED]


def verify(models_dir: Path, progress: Progress = silent) -> dict[str, str]:
    """Read every prepared file and run every model; returns known outputs by model id.

    Raises:
        ModelUnsound: a model is not ready, was changed, or answers wrongly.
    """
    return {model.model_id: _verify(model, models_dir, progress) for model in BUNDLED}


def _is_ready(model: BundledModel, folder: Path) -> bool:
    return _state(model, folder).state == "ready"


def _state(model: BundledModel, folder: Path) -> ModelState:
    manifest = read_manifest(folder)
    if manifest is None:
        return ModelState(model.model_id, folder, "damaged" if folder.exists() else "absent", 0)
    if not manifest.made_by(model.source, model.converter_version):
        return ModelState(model.model_id, folder, "stale", manifest.num_bytes)
    state: Literal["ready", "damaged"] = "damaged" if manifest.changed_sizes(folder) else "ready"
    return ModelState(model.model_id, folder, state, manifest.num_bytes)


def _make(model: BundledModel, folder: Path, progress: Progress) -> None:
    """Convert beside the final place, so that a cut preparation never looks like a model."""
    _clear_left_overs(folder.parent)
    with _unfinished_folder(folder.parent) as unfinished:
        progress(f"{model.model_id}: checking {model.source.file_name}")
        source = model.source.locate_verified()
        progress(f"{model.model_id}: converting")
        converter = model.converter()
        converter.convert(source, unfinished)
        progress(f"{model.model_id}: trying it")
        known_output = converter.known_output(unfinished)
        write_manifest(unfinished, _manifest(model, unfinished, known_output))
        _replace(folder, unfinished)
        progress(f"{model.model_id}: ready")


def _clear_left_overs(models_dir: Path) -> None:
    """Delete what killed preparers left; only the holder of the lock may."""
    for left_over in models_dir.glob(f"{_UNFINISHED_PREFIX}*"):
        shutil.rmtree(left_over, ignore_errors=True)


def _manifest(model: BundledModel, folder: Path, known_output: str) -> Manifest:
    return Manifest(
        model_id=model.model_id,
        converter_version=model.converter_version,
        source_requirement=model.source.requirement,
        source_sha256=model.source.sha256,
        known_output=known_output,
        files=record_files(folder),
    )


@contextmanager
def _unfinished_folder(models_dir: Path) -> Iterator[Path]:
    """Give an empty folder on the same file system; nothing of it stays."""
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED_PREFIX, dir=models_dir))
    try:
        yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _replace(folder: Path, unfinished: Path) -> None:
    """Put the finished folder in place; a process that has the old one mapped keeps it."""
    unfinished.chmod(0o755)
    with _unfinished_folder(folder.parent) as grave:
        if folder.exists():
            folder.rename(grave / "old")
        unfinished.rename(folder)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _verify(model: BundledModel, models_dir: Path, progress: Progress) -> str:
    folder = models_dir / model.model_id
    manifest = read_manifest(folder)
    if manifest is None or not _is_ready(model, folder):
        raise ModelUnsound(f"{folder} is not ready: run `strata models prepare`")
    progress(f"{model.model_id}: reading")
    if changed := manifest.changed_contents(folder):
        raise ModelUnsound(f"{folder} was changed in {', '.join(changed)}: delete the folder")
    progress(f"{model.model_id}: trying it")
    return model.converter().known_output(folder)
