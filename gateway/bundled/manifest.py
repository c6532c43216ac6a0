"""What a prepared model folder says of itself, so that a start need not load it to trust it."""

import os
from pathlib import Path

import msgspec

from gateway.bundled.source import PackagedFile, sha256_of

FILE_NAME = "strata-manifest.json"

_MODE = 0o644  # a prepared folder may be shared by several users


class FileRecord(msgspec.Struct, frozen=True):
    """Size and checksum of one prepared file."""

    num_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """Where a prepared folder came from and what lies in it, by path relative to the folder."""

    model_id: str
    converter_version: int
    source_requirement: str
    source_sha256: str
    known_output: str
    files: dict[str, FileRecord]

    @property
    def num_bytes(self) -> int:
        """Return the size of all files together."""
        return sum(record.num_bytes for record in self.files.values())

    def made_by(self, source: PackagedFile, converter_version: int) -> bool:
        """Say whether the folder is what this source and this converter would make."""
        return (self.source_sha256, self.converter_version) == (source.sha256, converter_version)

    def changed_sizes(self, folder: Path) -> list[str]:
        """Name the files that are missing or have another size; reads no contents."""
        return [
            name for name, record in self.files.items() if _size(folder / name) != record.num_bytes
        ]

    def changed_contents(self, folder: Path) -> list[str]:
        """Name the files that are missing or have another checksum; reads everything."""
        return [
            name
            for name, record in self.files.items()
            if not (folder / name).is_file() or sha256_of(folder / name) != record.sha256
        ]


def record_files(folder: Path) -> dict[str, FileRecord]:
    """Describe every file under the folder, and have it readable and safely on disk."""
    records = {}
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        path.chmod(_MODE)
        _sync(path)
        name = path.relative_to(folder).as_posix()
        records[name] = FileRecord(num_bytes=path.stat().st_size, sha256=sha256_of(path))
    return records


def read_manifest(folder: Path) -> Manifest | None:
    """Return the folder's manifest, None when there is none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest as the folder's last file."""
    path = folder / FILE_NAME
    path.write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2))
    path.chmod(_MODE)
    _sync(path)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
