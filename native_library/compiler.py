"""Compiles C sources once, for this start and later ones. Knows nothing of what they do."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from native_library.kept_library import KeptLibrary

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w")
_COMPILE_S = 60
_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p,
    "l": ctypes.c_long,
    "i": ctypes.c_int,
    "f": ctypes.c_float,
}


class CannotCompile(Exception):
    """This machine makes no library of the sources; says why."""


def compiled(
    name: str, folder: Path, sources: Sequence[str], flags: Sequence[str] = ()
) -> ctypes.CDLL:
    """Load the library of some C sources of a folder: the one that is kept, or else made now.

    Raises:
        CannotCompile: there is no compiler, or it fails.
    """
    compiler = next((path for each in _COMPILERS if (path := shutil.which(each))), None)
    if compiler is None:
        raise CannotCompile("there is no C compiler")
    command = [compiler, *_FLAGS, *flags]
    kept = KeptLibrary(name, sorted(folder.glob("*.[ch]")), command)
    return kept.load() or _made(command, [folder / source for source in sources], kept)


def _made(command: Sequence[str], sources: Sequence[Path], kept: KeptLibrary) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="strata-") as folder:
        built = Path(folder) / "made.so"
        try:
            subprocess.run(  # noqa: S603  a compiler found on the path, our own source
                [*command, *map(str, sources), "-o", str(built), "-lm"],
                check=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMPILE_S,
            )
            library = ctypes.CDLL(str(built))
        except (OSError, subprocess.SubprocessError) as error:
            raise CannotCompile(str(error)) from error
        kept.keep(built)
        return library


def function(library: ctypes.CDLL, name: str, arguments: str) -> "ctypes._NamedFuncPointer":
    """Return a function of the library; its arguments are pointers, longs, ints and floats."""
    found = library[name]
    found.argtypes = [_TYPES[letter] for letter in arguments.replace(" ", "")]
    found.restype = ctypes.c_int
    return found
