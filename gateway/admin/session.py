"""A signed-in operator's session: a signed cookie, so that a store holds those alone that ended.

Knows no HTTP framework. The signature is by the admin key, so that a new key ends all sessions.
"""

import base64
import binascii
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from gateway.errors import BackendUnavailable
from semantic_layer import MemoryRecords, Records, StoreUnavailable

LIFETIME_S = 12 * 3600.0
MAX_COOKIE = 2048
SESSION = "session"  # its place in a request's state

_OWNER = "#sessions"  # no tenant has this name
_SIGNS = b"strata-session"
_FORGERY = b"strata-csrf"


class _Payload(msgspec.Struct, frozen=True, array_like=True):
    expires_at: float
    nonce: str
    actor: str


@dataclass(frozen=True, slots=True)
class Session:
    """Who signed in; ``token`` goes with every change, as other sites cannot know it."""

    actor: str
    nonce: str
    expires_at: float
    token: str


class Sessions:
    """Opens, reads and ends sessions. ``clock`` is Unix seconds.

    ``records`` are shared, so that a session which ended at one gateway has ended at all. While
    they can't be reached a session goes on, unless this gateway knows better.
    """

    def __init__(
        self, records: Records | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._records = MemoryRecords(clock) if records is None else records
        self._clock = clock
        self._ended: dict[str, float] = {}

    def open(self, admin_key: str, actor: str) -> str:
        """Return the cookie of a new session."""
        payload = _Payload(self._clock() + LIFETIME_S, secrets.token_urlsafe(12), actor)
        data = base64.urlsafe_b64encode(msgspec.json.encode(payload))
        return f"{data.decode()}.{_sign(admin_key, data, _SIGNS)}"

    def read(self, admin_key: str, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None for one that is forged or expired.

        `has_ended` tells of those that were ended.
        """
        if not cookie or len(cookie) > MAX_COOKIE or not cookie.isascii():
            return None
        data, _, signature = cookie.partition(".")
        if not hmac.compare_digest(_sign(admin_key, data.encode(), _SIGNS), signature):
            return None
        try:
            payload = msgspec.json.decode(base64.urlsafe_b64decode(data), type=_Payload)
        except (binascii.Error, msgspec.MsgspecError):
            return None
        if payload.expires_at <= self._clock():
            return None
        token = _sign(admin_key, payload.nonce.encode(), _FORGERY)
        return Session(payload.actor, payload.nonce, payload.expires_at, token)

    async def has_ended(self, session: Session) -> bool:
        """Say whether a session ended, here or at another gateway."""
        if session.nonce in self._ended:
            return True
        try:
            (found,) = await self._records.get(_OWNER, [session.nonce])
        except StoreUnavailable:
            return False
        if found is not None:
            self._note(session)
        return found is not None

    async def end(self, session: Session) -> None:
        """Accept the session no more, here and at the other gateways.

        Raises:
            BackendUnavailable: it ended here, and the others could not be told.
        """
        self._note(session)
        left_s = session.expires_at - self._clock()
        try:
            await self._records.put(_OWNER, {session.nonce: b"ended"}, max(left_s, 1.0))
        except StoreUnavailable as error:
            raise BackendUnavailable(str(error), code="store_unavailable") from error

    def _note(self, session: Session) -> None:
        now = self._clock()
        self._ended = {nonce: at for nonce, at in self._ended.items() if at > now}
        self._ended[session.nonce] = session.expires_at


def cookie_name(port: int) -> str:
    """Return the cookie's name: browsers share cookies among the ports of a host."""
    return f"strata_session_{port}"


def _sign(admin_key: str, data: bytes, purpose: bytes) -> str:
    key = blake2b(admin_key.encode(), digest_size=32).digest()
    return blake2b(data, key=key, person=purpose, digest_size=32).hexdigest()
