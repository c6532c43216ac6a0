"""The proxy that the environment names for a URL. Pure: the environment is an argument."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.loopback import is_loopback

ALL = "*"


def proxy_of(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy for a URL; None for loopback hosts and those ``NO_PROXY`` excepts.

    Source: what curl reads: ``https_proxy`` and ``http_proxy`` by the URL's scheme, either case.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or _is_excepted(host, parts.port, _variable("no_proxy", environ)):
        return None
    return _variable(f"{parts.scheme}_proxy", environ) or None


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_excepted(host: str, port: int | None, excepted: str) -> bool:
    for row in excepted.split(","):
        name, _, of_port = row.strip().lower().partition(":")
        if name == ALL:
            return True
        domain = name.lstrip(".")
        fits = bool(domain) and (host == domain or host.endswith(f".{domain}"))
        if fits and (not of_port or of_port == str(port)):
            return True
    return False
