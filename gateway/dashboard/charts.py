"""Charts as SVG, drawn here: they work offline, need no script and no inline style.

`svg.py` (MIT) writes the elements: browser libraries would need inline styles, which the pages'
content security policy forbids, and Matplotlib takes seconds and megabytes. A drawing holds no
text: it is stretched to its place; its ticks stand beside it in HTML, names of points over it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import svg
from markupsafe import Markup, escape

SIDE = 100.0
GAP = 0.12
LINES = 4
APART = 0.15  # of a side: names of points that are nearer would lie over each other


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing and its ticks: ``y_ticks`` from top to bottom, both at even distances.

    ``spots`` lies over the drawing: its points, to be read and reached by keys.
    """

    svg: Markup
    y_ticks: Sequence[str]
    x_ticks: Sequence[str]
    spots: Markup = field(default_factory=Markup)


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of a curve with its bounds; all are shares of the axes' ends (0..1)."""

    x: float
    y: float
    low: float
    high: float


def bars(columns: Sequence[Mapping[str, float]], kinds: Sequence[str], top: float) -> Markup:
    """Draw one stacked bar for each column; a kind's name is its class."""
    width = SIDE / max(len(columns), 1)
    drawn: list[svg.Element] = _grid()
    for at, column in enumerate(columns):
        below = 0.0
        for kind in kinds:
            height = SIDE * column.get(kind, 0) / top if top else 0.0
            if height:
                drawn.append(
                    svg.Rect(
                        x=_short(width * (at + GAP / 2)),
                        y=_short(SIDE - below - height),
                        width=_short(width * (1 - GAP)),
                        height=_short(height),
                        class_=[kind],
                    )
                )
            below += height
    return _drawing(drawn)


def share_bar(shares: Mapping[str, float]) -> Markup:
    """Draw shares of one whole side by side."""
    total = sum(shares.values())
    drawn: list[svg.Element] = []
    left = 0.0
    for kind, share in shares.items():
        width = SIDE * share / total if total else 0.0
        if width:
            drawn.append(
                svg.Rect(x=_short(left), y=0, width=_short(width), height=SIDE, class_=[kind])
            )
        left += width
    return _drawing(drawn)


def curve(spots: Sequence[Spot], limit: float | None, now: Spot | None) -> Markup:
    """Draw a line through its points, within its band; a limit across, and where we stand."""
    drawn = _grid()
    if len(spots) > 1:
        edge = [(spot.x, spot.high) for spot in spots]
        back = [(spot.x, spot.low) for spot in reversed(spots)]
        drawn.append(svg.Path(d=[*_path([*edge, *back]), svg.Z()], class_=["band"]))
        line = _path([(spot.x, spot.y) for spot in spots])
        drawn.append(svg.Path(d=line, class_=["line", "wrong"]))
    if limit is not None and 0 <= limit <= 1:
        drawn.append(_across(limit, "limit"))
    drawn += [_dot(spot.x, spot.y, "dot") for spot in spots]
    if now is not None:
        drawn.append(_dot(now.x, now.y, "dot now"))
    return _drawing(drawn)


def named(spots: Sequence[Spot], names: Sequence[tuple[str, str]]) -> Markup:
    """Return what lies over a curve: each point with its short name, and the long one read aloud.

    It is not stretched, so that texts keep their shape; where points lie close together the first
    ones show their names, the others when they are reached.
    """
    drawn: list[svg.Element] = []
    shown: list[Spot] = []
    for spot, (short, long) in zip(spots, names, strict=True):
        is_shown = all(math.hypot(spot.x - one.x, spot.y - one.y) > APART for one in shown)
        shown += [spot] if is_shown else []
        drawn.append(_named(spot, short, long, is_shown=is_shown))
    whole = svg.SVG(elements=drawn, class_=["spots"])
    return Markup(whole)  # noqa: S704  names are escaped, the rest is figures and class names


def _named(spot: Spot, short: str, long: str, *, is_shown: bool) -> svg.Element:
    x, y = svg.Length(_short(SIDE * spot.x), "%"), svg.Length(_short(SIDE * (1 - spot.y)), "%")
    anchor: Literal["start", "middle", "end"] = "middle"
    if spot.x < APART:
        anchor = "start"
    elif spot.x > 1 - APART:
        anchor = "end"
    return svg.G(
        elements=[
            svg.Circle(cx=x, cy=y, r=9),
            svg.Text(x=x, y=y, dy=-9, text_anchor=anchor, text=str(escape(short))),
        ],
        class_=["shown"] if is_shown else [],
        tabindex=0,
        extra={"role": "img", "aria-label": str(escape(long))},
    )


def steps(
    lines: Mapping[str, Sequence[tuple[float, float]]],
    marks: Mapping[str, float],
    limit: float | None = None,
) -> Markup:
    """Draw lines by their classes, and upright marks that a script may move."""
    drawn = _grid()
    for kind, points in lines.items():
        if len(points) > 1:
            drawn.append(svg.Path(d=_path(points), class_=["line", kind]))
    if limit is not None and 0 <= limit <= 1:
        drawn.append(_across(limit, "limit"))
    for kind, x in marks.items():
        at = _short(SIDE * x)
        drawn.append(svg.Line(x1=at, x2=at, y1=0, y2=SIDE, class_=["mark", kind]))
    return _drawing(drawn)


def round_top(value: float) -> float:
    """Return the end of an axis that a value fits under: 1, 2 or 4, by tens."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(unit * step for step in (1, 2, 4, 10) if value <= unit * step * (1 + 1e-9))


def _grid() -> list[svg.Element]:
    return [
        svg.Line(x1=0, x2=SIDE, y1=_short(y), y2=_short(y), class_=["grid"])
        for y in (SIDE * at / LINES for at in range(LINES + 1))
    ]


def _across(share: float, kind: str) -> svg.Element:
    y = _short(SIDE * (1 - share))
    return svg.Line(x1=0, x2=SIDE, y1=y, y2=y, class_=[kind])


def _dot(x: float, y: float, kind: str) -> svg.Element:
    """Draw a dot as a line of no length with round ends, which stretching leaves round."""
    d: list[svg.PathData] = [svg.M(_short(SIDE * x), _short(SIDE * (1 - y))), svg.h(0.001)]
    return svg.Path(d=d, class_=kind.split())


def _path(points: Sequence[tuple[float, float]]) -> list[svg.PathData]:
    places = [(_short(SIDE * x), _short(SIDE * (1 - y))) for x, y in points]
    return [svg.M(*places[0]), *(svg.L(*place) for place in places[1:])]


def _short(value: float) -> float:
    return round(value, 2)


def _drawing(elements: list[svg.Element]) -> Markup:
    whole = svg.SVG(
        viewBox=svg.ViewBoxSpec(0, 0, SIDE, SIDE),
        preserveAspectRatio=svg.PreserveAspectRatio("none"),
        elements=elements,
        extra={"aria-hidden": "true", "focusable": "false"},
    )
    return Markup(whole)  # noqa: S704  figures and our own class names alone
