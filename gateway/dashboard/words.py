"""How figures, times and stored texts are written on pages."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

NONE = "–"
_CONTROLS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)
_DIRECTION = {
    point: f"\N{MATHEMATICAL LEFT ANGLE BRACKET}U+{point:04X}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
    for point in _CONTROLS
}
_UNITS = ((1e9, "G"), (1e6, "M"), (1e4, "k"))
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")


def visible(value: Any) -> Any:
    """Return a text with controls of direction written out: they would turn round what follows.

    Source: Unicode Technical Report 36, Bidirectional Text Spoofing.
    """
    if not isinstance(value, str):
        return value
    shown = value.translate(_DIRECTION)
    return Markup(shown) if isinstance(value, Markup) else shown  # noqa: S704 as escaped as before


def number(value: float | None) -> str:
    """Return a count, with its thousands apart."""
    return NONE if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """Return a count of few characters: 12.3k."""
    if value is None:
        return NONE
    for size, unit in _UNITS:
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g}{unit}"
    return f"{value:,.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share (0..1) in per cent."""
    return NONE if share is None else f"{100 * share:.{digits}f}%"


def seconds(value: float | None) -> str:
    """Return a duration in the unit that suits it."""
    if value is None:
        return NONE
    if value < 1e-3:  # noqa: PLR2004
        return f"{1e6 * value:.0f} µs"
    if value < 1:
        return f"{1e3 * value:.3g} ms"
    if value < 100:  # noqa: PLR2004
        return f"{value:.3g} s"
    minutes, hours = value / 60, value / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:,.1f} h"  # noqa: PLR2004


def size(num_bytes: float | None) -> str:
    """Return a number of bytes in the unit that suits it."""
    if num_bytes is None:
        return NONE
    power = min(int(math.log(max(num_bytes, 1), 1024)), len(_BYTES) - 1)
    return f"{num_bytes / 1024**power:.3g} {_BYTES[power]}"


def threshold(value: float | None) -> str:
    """Return a threshold or a score; only 1 reads as 1, which is met by equal texts alone."""
    if value is None:
        return NONE
    return f"{value:.4f}" if 0.999 < value < 1 else f"{value:.3f}"  # noqa: PLR2004


def when(at: float | None) -> Markup | str:
    """Return a moment (Unix seconds) that the page's module writes in the reader's time zone."""
    if at is None:
        return NONE
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%Y-%m-%d %H:%M:%S")
    )


def clock(at: float) -> Markup:
    """Return the time of day of a moment, which the page's module makes local."""
    moment = datetime.fromtimestamp(at, UTC)
    return Markup('<time data-clock datetime="{}">{} UTC</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%H:%M")
    )


@pass_context
def stored(context: Context, text: str | None) -> str | Markup:
    """Return a prompt or an answer as text; only its length where the settings mask it."""
    if not text:
        return NONE
    if context["masked"]:
        return Markup('<span class="masked">{}</span>').format(context["t"]("masked", n=len(text)))
    return text


FILTERS: Mapping[str, Any] = {
    "number": number,
    "short": short,
    "percent": percent,
    "seconds": seconds,
    "size": size,
    "threshold": threshold,
    "when": when,
    "stored": stored,
}
