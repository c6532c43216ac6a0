"""Tables on standard output, whole whatever the width of the terminal."""

from collections.abc import Sequence

import click

_GAP = "  "


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under their column names."""
    lines = [columns, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo(_GAP.join(cells).rstrip())
