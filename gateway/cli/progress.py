"""Work that takes a while, shown on stderr: a live line on a terminal, plain lines elsewhere."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from rich.console import Console
from rich.progress import Progress as LiveLine
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn, wrap_file

Progress = Callable[[str], None]


@contextmanager
def narrated() -> Iterator[Progress]:
    """Give a function that tells the user what is being done now."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with LiveLine(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)


@contextmanager
def reading(file: BinaryIO, doing: str) -> Iterator[Iterable[bytes]]:
    """Give the file's lines, with a bar on a terminal for as far as they have been read."""
    console = Console(stderr=True)
    if not console.is_terminal or not file.seekable():
        yield file
        return
    size = os.fstat(file.fileno()).st_size
    with wrap_file(file, size, description=doing, console=console) as lines:
        yield lines
