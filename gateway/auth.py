"""Who asks: API keys become tenants, and the admin routes get their guard.

Knows keys only by their hash. Takes headers as plain values, so it knows no HTTP framework.
"""

import hmac
import ipaddress
import json
import os
import re
import secrets
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog

from gateway.errors import Forbidden, StrataError, Unauthorized
from gateway.settings import Settings, SettingsError

PUBLIC = "public"
KEY_PREFIX = "sk-strata-"
FORWARDED_HEADERS = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"(blake2b|sha256):[0-9a-f]{64}")
_SALT_KEY = b"strata tenant salt v1"

_log = structlog.get_logger(__name__)


class KeysFileError(StrataError):
    """The keys file cannot be read, or a row of it is wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of everything cached for a key. ``salt`` separates tenants' KV blocks."""

    name: str
    salt: bytes

    @classmethod
    def named(cls, name: str) -> "Tenant":
        """Return the tenant of this name; its salt follows from the name alone."""
        return cls(name, blake2b(name.encode(), key=_SALT_KEY, digest_size=16).digest())


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One row of the keys file; ``hash`` is ``blake2b:`` or ``sha256:`` and 64 hex digits."""

    key_id: str
    tenant: str
    hash: str
    created: str = ""


class KeyRing:
    """Turns a presented key into its tenant.

    Args:
        path: the keys file; None is open mode, where everybody is the tenant ``public``.
        recheck_s: how long a loaded file is trusted before its time stamp is looked at again.
        clock: monotonic seconds.

    Raises:
        KeysFileError: the file cannot be read at the start. Later a broken file is logged and
            the keys read before stay; a file that is gone leaves no key.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        recheck_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._recheck_s = recheck_s
        self._clock = clock
        self._public = Tenant.named(PUBLIC)
        self._tenants: dict[str, list[tuple[str, Tenant]]] = {}
        self._version: tuple[int, int, int] | None = None
        self._checked_at = 0.0
        if path is not None:
            self._load(path)

    @property
    def is_open(self) -> bool:
        """Whether any or no key is the tenant ``public``."""
        return self._path is None

    def tenant(self, authorization: str | None, api_key: str | None = None) -> Tenant:
        """Return whose key this is, from ``Authorization`` or ``x-api-key``.

        Raises:
            Unauthorized: no key, or one that is not in the file.
        """
        if self._path is None:
            return self._public
        self._reload_when_changed(self._path)
        key = bearer(authorization) or api_key
        if not key:
            raise Unauthorized("an API key is required: Authorization: Bearer KEY")
        for digest in (_blake2b(key), _sha256(key)):
            for known, tenant in self._tenants.get(digest[:16], ()):
                if hmac.compare_digest(known, digest):
                    return tenant
        raise Unauthorized("incorrect API key provided")

    def _reload_when_changed(self, path: Path) -> None:
        now = self._clock()
        if now - self._checked_at < self._recheck_s:
            return
        self._checked_at = now
        try:
            if _version(path) != self._version:
                self._load(path)
        except FileNotFoundError:
            if self._tenants:
                _log.error("keys_file_gone", path=str(path))
            self._tenants, self._version = {}, None
        except (KeysFileError, OSError) as error:
            _log.error("keys_file_not_reloaded", path=str(path), error=str(error))

    def _load(self, path: Path) -> None:
        self._checked_at = self._clock()
        try:
            self._version = _version(path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise KeysFileError(f"cannot read {path}: {error.strerror}") from error
        tenants: dict[str, list[tuple[str, Tenant]]] = {}
        for row in list_keys(path):
            tenants.setdefault(row.hash[:16], []).append((row.hash, Tenant.named(row.tenant)))
        self._tenants = tenants


class AdminGuard:
    """Lets requests in to ``/admin``.

    With a key, the key decides. Without one, only a loopback peer that names a loopback host may
    enter, and no page of another origin: a peer address alone would let in what a local proxy
    forwards, what a rebound DNS name reaches, and what a browser posts for a foreign site.
    """

    def __init__(self, admin_key: str | None) -> None:
        self._digest = _blake2b(admin_key) if admin_key else None

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
        if not hmac.compare_digest(self._digest, _blake2b(key)):
            raise Unauthorized("the admin key is missing or wrong")


def bearer(authorization: str | None) -> str | None:
    """Return the token of a Bearer credential."""
    if not authorization:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address is this machine's loopback."""
    if not host:
        return False
    name = host.rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def check_exposure(settings: Settings) -> None:
    """Refuse to serve others than this machine without keys.

    Raises:
        SettingsError: the host is not loopback and no keys file is set.
    """
    if settings.api_keys_file is None and not is_loopback(settings.host):
        raise SettingsError(
            f"host {settings.host} is reachable from other machines: set api_keys_file "
            "(STRATA_API_KEYS_FILE, see 'strata keys add') or listen on 127.0.0.1"
        )


def add_key(path: Path, tenant: str, key: str | None = None) -> tuple[str, str]:
    """Add a key for a tenant, making the file if needed; return its id and the key itself.

    Raises:
        KeysFileError: the file is broken, the tenant's name is not allowed, or the key is known
            or too short.
    """
    if not _NAME.fullmatch(tenant):
        raise KeysFileError(f"tenant {tenant!r}: use 1 to 64 of A-Z a-z 0-9 . _ -")
    if key is not None and len(key) < 16:
        raise KeysFileError("a key needs at least 16 characters")
    rows = list_keys(path) if path.exists() else []
    plain = key or KEY_PREFIX + secrets.token_urlsafe(32)
    digest = _blake2b(plain)
    if any(row.hash == digest for row in rows):
        raise KeysFileError("this key is already in the file")
    created = datetime.now(UTC).isoformat(timespec="seconds")
    row = KeyRow(f"key-{secrets.token_hex(4)}", tenant, digest, created)
    _write(path, [*rows, row])
    return row.key_id, plain


def list_keys(path: Path) -> list[KeyRow]:
    """Return the rows of a keys file.

    Raises:
        KeysFileError: the file cannot be read or a row is wrong.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KeysFileError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeysFileError(f"{path} is not valid TOML: {error}") from error
    rows = tree.get("keys", [])
    if not isinstance(rows, list):
        raise KeysFileError(f"{path}: expected [[keys]] tables")
    return [_row(row, f"{path}: keys[{at}]") for at, row in enumerate(rows)]


def revoke_key(path: Path, key_id: str) -> None:
    """Take a key out of the file.

    Raises:
        KeysFileError: the file is broken or holds no such id.
    """
    rows = list_keys(path)
    kept = [row for row in rows if row.key_id != key_id]
    if len(kept) == len(rows):
        raise KeysFileError(f"no key {key_id!r} in {path}")
    _write(path, kept)


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


def _row(row: Any, where: str) -> KeyRow:
    known = {"id": "key_id", "tenant": "tenant", "hash": "hash", "created": "created"}
    if not isinstance(row, dict) or not {"id", "tenant", "hash"} <= row.keys() <= known.keys():
        raise KeysFileError(f"{where}: expected id, tenant, hash and created")
    values = {known[name]: str(value) for name, value in row.items()}
    if not _NAME.fullmatch(values["tenant"]):
        raise KeysFileError(f"{where}.tenant: use 1 to 64 of A-Z a-z 0-9 . _ -")
    if not _HASH.fullmatch(values["hash"]):
        raise KeysFileError(f"{where}.hash: expected blake2b: or sha256: and 64 hex digits")
    return KeyRow(**values)


def _write(path: Path, rows: list[KeyRow]) -> None:
    lines = ["# API keys of Strata, by hash. Change with: strata keys add | list | revoke"]
    for row in rows:
        fields = {"id": row.key_id, "tenant": row.tenant, "hash": row.hash, "created": row.created}
        lines += ["", "[[keys]]"]
        lines += [
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items()
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _version(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _blake2b(key: str) -> str:
    return "blake2b:" + blake2b(key.encode(), digest_size=32).hexdigest()


def _sha256(key: str) -> str:
    return "sha256:" + sha256(key.encode()).hexdigest()
