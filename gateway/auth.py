"""Who asks: an API key becomes a tenant.

Knows keys only by their hash. Takes headers as plain values, so it knows no HTTP framework.
"""

import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import structlog

from gateway.errors import Unauthorized
from gateway.keys_file import KeysFileError, blake2b_digest, read_keys_file, sha256_digest
from gateway.loopback import is_loopback
from gateway.rules import UNRESTRICTED, TenantRules
from gateway.settings import Settings, SettingsError

PUBLIC = "public"
BUCKET_CHARS = 16  # rows are found by the start of their hash, then compared in constant time

_SALT_KEY = b"strata tenant salt v1"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of everything cached for a key. ``salt`` separates tenants' KV blocks."""

    name: str
    salt: bytes
    rules: TenantRules = UNRESTRICTED

    @classmethod
    def named(cls, name: str, rules: TenantRules = UNRESTRICTED) -> "Tenant":
        """Return the tenant of this name; its salt follows from the name alone."""
        return cls(name, blake2b(name.encode(), key=_SALT_KEY, digest_size=16).digest(), rules)


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

    def tenants(self) -> list[Tenant]:
        """List the tenants that have a key, or ``public`` in open mode, by name."""
        if self._path is None:
            return [self._public]
        self._reload_when_changed(self._path)
        known = {tenant.name: tenant for rows in self._tenants.values() for _, tenant in rows}
        return [known[name] for name in sorted(known)]

    def read(self, path: Path | None) -> None:
        """Take the keys of a file, now; None opens the gateway.

        Raises:
            KeysFileError: the file cannot be read; nothing has changed then.
        """
        if path is not None:
            self._load(path)
        self._path = path

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
        for digest_of in (blake2b_digest, sha256_digest):
            digest = digest_of(key)
            for known, tenant in self._tenants.get(digest[:BUCKET_CHARS], ()):
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
        version = _version(path) if path.exists() else None
        file = read_keys_file(path)
        tenants: dict[str, list[tuple[str, Tenant]]] = {}
        for row in file.keys:
            bucket = tenants.setdefault(row.hash[:BUCKET_CHARS], [])
            bucket.append((row.hash, Tenant.named(row.tenant, file.rules_of(row.tenant))))
        self._tenants, self._version = tenants, version


def bearer(authorization: str | None) -> str | None:
    """Return the token of a Bearer credential."""
    if not authorization:
        return None
    scheme, _, token = authorization.partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


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


def _version(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
