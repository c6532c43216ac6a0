"""Figures as people read them."""

_SMALL = 0.01
_SPANS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def percent(share: float) -> str:
    """Return a share (0..1) as ``12%``, small ones as ``0.4%``."""
    return f"{share:.1%}" if 0 < share < _SMALL else f"{share:.0%}"


def span(seconds: float) -> str:
    """Return a time as ``36 h`` or ``2.5 s``."""
    for unit_s, name in _SPANS:
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {name}"
    return f"{seconds:.3g} s"


def size(num_bytes: float) -> str:
    """Return a size as ``1.5 GiB``."""
    for power, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if num_bytes >= 1 << power:
            return f"{num_bytes / (1 << power):.1f} {name}"
    return f"{num_bytes:.0f} bytes"


def counted(number: float, noun: str) -> str:
    """Return ``1 request`` or ``12,000 requests``."""
    return f"{number:,.0f} {noun}" if number == 1 else f"{number:,.0f} {noun}s"
