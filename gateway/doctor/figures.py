"""Figures as people read them."""

from gateway.said import Said, say

_SMALL = 0.01
_DAY_S, _HOUR_S, _MINUTE_S = 86_400.0, 3600.0, 60.0


def percent(share: float) -> str:
    """Return a share (0..1) as ``12%``, small ones as ``0.4%``."""
    return f"{share:.1%}" if 0 < share < _SMALL else f"{share:.0%}"


def span(seconds: float) -> Said:
    """Return a time as ``36 h`` or ``2.5 s``."""
    if seconds >= 2 * _DAY_S:
        return say("{n} d", n=f"{seconds / _DAY_S:.0f}")
    if seconds >= 2 * _HOUR_S:
        return say("{n} h", n=f"{seconds / _HOUR_S:.0f}")
    if seconds >= 2 * _MINUTE_S:
        return say("{n} min", n=f"{seconds / _MINUTE_S:.0f}")
    return say("{n} s", n=f"{seconds:.3g}")


def size(num_bytes: float) -> str:
    """Return a size as ``1.5 GiB``."""
    for power, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if num_bytes >= 1 << power:
            return f"{num_bytes / (1 << power):.1f} {name}"
    return f"{num_bytes:.0f} B"


def counted(number: float, noun: str) -> Said:
    """Return ``1 request`` or ``12,000 requests``."""
    return say(f"{{n}} {noun}" if number == 1 else f"{{n}} {noun}s", n=f"{number:,.0f}")
