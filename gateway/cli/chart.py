"""Line charts of shares over sizes, as SVG text. Knows no files."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

Points = Sequence[tuple[int, float]]

_WIDTH, _HEIGHT = 720, 420
_LEFT, _TOP, _RIGHT, _BOTTOM = 60, 40, 600, 370
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#d62728", "#7f7f7f")
_GRID_LINES = 5
_LEGEND_STEP = 20


def draw_chart(title: str, lines: Mapping[str, Points]) -> str:
    """Draw a line per name: sizes (> 0) on a logarithmic axis, shares of 0..1 from 0 upwards."""
    sizes = sorted({size for points in lines.values() for size, _ in points})
    top = max((share for points in lines.values() for _, share in points), default=0) or 1.0
    parts = [_text(_LEFT, 24, title, 'font-size="16"'), *_grid(top), *_ticks(sizes)]
    for i, (name, points) in enumerate(lines.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        places = [(_x(size, sizes), _y(share, top)) for size, share in points]
        parts += _line(places, colour)
        parts.append(_text(_RIGHT + 14, _TOP + 10 + i * _LEGEND_STEP, name, f'fill="{colour}"'))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _grid(top: float) -> list[str]:
    parts = []
    for i in range(_GRID_LINES + 1):
        share = top * i / _GRID_LINES
        y = _y(share, top)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="#ddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, f"{share:.1%}", 'text-anchor="end"'))
    return parts


def _ticks(sizes: Sequence[int]) -> list[str]:
    return [
        _text(_x(size, sizes), _BOTTOM + 18, f"{size:,}", 'text-anchor="middle"') for size in sizes
    ]


def _line(places: Sequence[tuple[float, float]], colour: str) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _x(size: int, sizes: Sequence[int]) -> float:
    low, high = log10(sizes[0]), log10(sizes[-1])
    if low == high:
        return (_LEFT + _RIGHT) / 2
    return _LEFT + (log10(size) - low) / (high - low) * (_RIGHT - _LEFT)


def _y(share: float, top: float) -> float:
    return _BOTTOM - share / top * (_BOTTOM - _TOP)


def _text(x: float, y: float, text: str, attributes: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(text)}</text>'
