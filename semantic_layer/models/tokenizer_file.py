"""Tokenizers read from their files, one object for all that use the same file."""

from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer


def tokenizer_of(path: Path) -> Tokenizer:
    """Return the tokenizer of a ``tokenizer.json``, without truncation and padding; thread-safe.

    Raises:
        ValueError: there is no such file, or it is broken.
    """
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=2)  # a vocabulary of 250,000 words takes 280 MB
def _read(path: Path, _: int) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{path.name}: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
