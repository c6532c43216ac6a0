"""A compiled library in the user's cache folder: there for the next start. Knows no compiler."""

import ctypes
import os
import platform
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

_CPU = Path("/proc/cpuinfo")
_CPU_SAYS = ("vendor_id", "model name", "flags", "CPU implementer", "CPU part", "Features")


class KeptLibrary:
    """The library that these sources and this command make on this CPU; no other is ever loaded.

    Kept where only this user can write; a folder that is not so keeps none.
    """

    def __init__(self, name: str, sources: Sequence[Path], command: Sequence[str]) -> None:
        digest = blake2b(digest_size=16)
        for part in (_cpu(), *map(_compiler, command[:1]), *(w.encode() for w in command)):
            digest.update(part + b"\0")
        for source in sources:
            digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
        self._path = _folder() / f"{name}-{digest.hexdigest()}.so"

    def load(self) -> ctypes.CDLL | None:
        """Load what is kept; None where nothing is, or it is not ours alone."""
        if not (_is_ours(self._path.parent) and _is_ours(self._path)):
            return None
        try:
            return ctypes.CDLL(str(self._path))
        except OSError:  # half of it, after a crash: it is compiled again
            return None

    def keep(self, built: Path) -> None:
        """Keep a library that was just built, where that can be done."""
        folder = self._path.parent
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(folder):
                self._put(built)

    def _put(self, built: Path) -> None:
        number, name = tempfile.mkstemp(dir=self._path.parent, suffix=".part")
        try:
            with os.fdopen(number, "wb") as target, built.open("rb") as source:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())
            Path(name).replace(self._path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


def _folder() -> Path:
    """Return the user's cache folder. Source: XDG Base Directory Specification."""
    named = os.environ.get("XDG_CACHE_HOME")
    home = Path(named) if named else Path.home() / ".cache"
    return home / "strata" / "native"


def _is_ours(path: Path) -> bool:
    """Say whether a file or folder is there and nobody else can write to it."""
    try:
        info = path.lstat()
    except OSError:
        return False
    is_plain = stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)
    return is_plain and info.st_uid == os.getuid() and not info.st_mode & 0o022


def _compiler(name: str) -> bytes:
    path = Path(name).resolve()
    info = path.stat()
    return f"{path} {info.st_size} {info.st_mtime_ns}".encode()


def _cpu() -> bytes:
    """Return what a compiler may suit its code to, as the system tells of its first CPU."""
    said = [platform.machine(), platform.system(), platform.processor()]
    with suppress(OSError):
        first = _CPU.read_text(errors="replace").split("\n\n")[0].splitlines()
        said += [line for line in first if line.partition("\t")[0].strip() in _CPU_SAYS]
    return "\n".join(said).encode()
