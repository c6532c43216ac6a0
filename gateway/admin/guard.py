"""Who may enter ``/admin``. Takes headers as plain values, so it knows no HTTP framework."""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.auth import bearer
from gateway.errors import Forbidden, Unauthorized
from gateway.keys_file import blake2b_digest
from gateway.loopback import is_loopback

FORWARDED_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


class AdminGuard:
    """Lets requests in to ``/admin``.

    With a key, the key decides. Without one, only a loopback peer that names a loopback host may
    enter, and no page of another origin: a peer address alone would let in what a local proxy
    forwards, what a rebound DNS name reaches, and what a browser posts for a foreign site.
    """

    def __init__(self, admin_key: str | None) -> None:
        self._digest = blake2b_digest(admin_key) if admin_key else None

    def check(self, headers: Mapping[str, str], peer: str | None) -> None:
        """Let the caller pass or raise; header names are lower case.

        Raises:
            Unauthorized: the admin key is missing or wrong.
            Forbidden: no admin key is set and the caller is not plainly local.
        """
        if self._digest is None:
            _refuse_unless_local(headers, peer)
            return
        key = headers.get("x-strata-admin-key") or bearer(headers.get("authorization")) or ""
        if not hmac.compare_digest(self._digest, blake2b_digest(key)):
            raise Unauthorized("the admin key is missing or wrong")


def _refuse_unless_local(headers: Mapping[str, str], peer: str | None) -> None:
    if not is_loopback(peer) or any(name in headers for name in FORWARDED_HEADERS):
        raise Forbidden("admin routes are open to this machine only; set an admin key")
    host = headers.get("host", "")
    if not is_loopback(urlsplit(f"//{host}").hostname if host else None):
        raise Forbidden("admin routes need a loopback Host, such as localhost; set an admin key")
    origin = headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != host
    if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Forbidden("admin routes take no requests from pages of another origin")
