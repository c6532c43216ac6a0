"""The file of API keys: TOML rows of key hash and tenant. Keys themselves are never kept."""

import json
import os
import re
import secrets
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from gateway.settings import SettingsError

KEY_PREFIX = "sk-strata-"
MIN_KEY_LENGTH = 16

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HASH = re.compile(r"(blake2b|sha256):[0-9a-f]{64}")


class KeysFileError(SettingsError):
    """The keys file cannot be read, or a row of it is wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One row of the keys file; ``hash`` is ``blake2b:`` or ``sha256:`` and 64 hex digits."""

    key_id: str
    tenant: str
    hash: str
    created: str = ""


def add_key(path: Path, tenant: str, key: str | None = None) -> tuple[str, str]:
    """Add a key for a tenant, making the file if needed; return its id and the key itself.

    Raises:
        KeysFileError: the file is broken, the tenant's name is not allowed, or the key is known
            or too short.
    """
    if not _NAME.fullmatch(tenant):
        raise KeysFileError(f"tenant {tenant!r}: use 1 to 64 of A-Z a-z 0-9 . _ -")
    if key is not None and len(key) < MIN_KEY_LENGTH:
        raise KeysFileError(f"a key needs at least {MIN_KEY_LENGTH} characters")
    rows = list_keys(path) if path.exists() else []
    plain = key or KEY_PREFIX + secrets.token_urlsafe(32)
    digest = blake2b_digest(plain)
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


def blake2b_digest(key: str) -> str:
    """Return a key's hash as it stands in the file."""
    return "blake2b:" + blake2b(key.encode(), digest_size=32).hexdigest()


def sha256_digest(key: str) -> str:
    """Return the hash of a key that other tools made, such as sha256sum."""
    return "sha256:" + sha256(key.encode()).hexdigest()


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
