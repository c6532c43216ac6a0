"""Charts on disk: SVG by ourselves, PNG by matplotlib where that is installed."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.cli.chart import Points, draw_chart
from gateway.errors import StrataError

_PLOT_EXTRA = 'pip install "strata-gateway[plot]"'


class NoChart(StrataError):
    """A chart can't be written."""


def check_kind(path: Path) -> None:
    """Refuse a chart file before any work is done for it.

    Raises:
        NoChart: neither .svg nor .png, or a .png without matplotlib.
    """
    if path.suffix not in (".svg", ".png"):
        raise NoChart(f"{path}: a chart is written as .svg or .png")
    if path.suffix == ".png":
        _figure_class()


def write_chart(path: Path, title: str, lines: Mapping[str, Points]) -> None:
    """Draw a line per name, of shares over sizes, to an .svg or .png file.

    Raises:
        NoChart: the file can't be written.
    """
    try:
        if path.suffix == ".svg":
            path.write_text(draw_chart(title, lines), encoding="utf-8")
        else:
            _write_png(path, title, lines)
    except OSError as error:
        raise NoChart(f"{path}: {error.strerror}") from error


def _write_png(path: Path, title: str, lines: Mapping[str, Points]) -> None:
    figure = _figure_class()(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel="blocks", ylabel="hit share", xscale="log")
    for name, points in lines.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def _figure_class() -> Any:
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ModuleNotFoundError as error:
        raise NoChart(f"a .png needs matplotlib: {_PLOT_EXTRA}, or choose .svg") from error
