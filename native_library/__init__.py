"""C sources compiled for the machine they run on; imports nothing else of ours."""

from native_library.compiler import CannotCompile, compiled, function
from native_library.kept_library import KeptLibrary

__all__ = ["CannotCompile", "KeptLibrary", "compiled", "function"]
