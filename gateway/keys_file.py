"""The file of API keys and tenants' rules, in TOML. Keys themselves are never kept, only hashes."""

import json
import os
import re
import secrets
import tempfile
import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import msgspec

from gateway.rules import UNRESTRICTED, TenantRules
from gateway.settings import SettingsError

KEY_PREFIX = "sk-strata-"
MIN_KEY_LENGTH = 16
EVERYBODY = "*"  # rules of tenants without rules of their own

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


@dataclass(frozen=True, slots=True)
class KeysFile:
    """All of a keys file; the rules of ``*`` hold for tenants without rules of their own."""

    keys: list[KeyRow]
    rules: dict[str, TenantRules]

    def rules_of(self, tenant: str) -> TenantRules:
        """Return what a tenant may do."""
        return self.rules.get(tenant) or self.rules.get(EVERYBODY, UNRESTRICTED)


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
    file = read_keys_file(path) if path.exists() else KeysFile([], {})
    plain = key or KEY_PREFIX + secrets.token_urlsafe(32)
    digest = blake2b_digest(plain)
    if any(row.hash == digest for row in file.keys):
        raise KeysFileError("this key is already in the file")
    created = datetime.now(UTC).isoformat(timespec="seconds")
    row = KeyRow(f"key-{secrets.token_hex(4)}", tenant, digest, created)
    _write(path, KeysFile([*file.keys, row], file.rules))
    return row.key_id, plain


def list_keys(path: Path) -> list[KeyRow]:
    """Return the rows of a keys file; raises as `read_keys_file` does."""
    return read_keys_file(path).keys


def read_keys_file(path: Path) -> KeysFile:
    """Return the keys and rules of a file.

    Raises:
        KeysFileError: the file cannot be read, or a row or rule is wrong; names it.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KeysFileError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeysFileError(f"{path} is not valid TOML: {error}") from error
    if unknown := tree.keys() - {"keys", "tenants"}:
        raise KeysFileError(f"{path}: unknown {min(unknown)}; expected [[keys]] and [tenants.NAME]")
    rows, rules = tree.get("keys", []), tree.get("tenants", {})
    if not isinstance(rows, list):
        raise KeysFileError(f"{path}: expected [[keys]] tables")
    if not isinstance(rules, dict):
        raise KeysFileError(f"{path}: expected [tenants.NAME] tables")
    return KeysFile(
        [_row(row, f"{path}: keys[{at}]") for at, row in enumerate(rows)],
        {name: _rules(name, table, f"{path}: tenants.{name}") for name, table in rules.items()},
    )


def set_rules(path: Path, tenant: str, changes: dict[str, Any]) -> TenantRules:
    """Change rules of a tenant, or of all others when it is ``*``; return what holds then.

    A change to None takes the rule away.

    Raises:
        KeysFileError: the file is broken, or a name or value is not allowed.
    """
    file = read_keys_file(path) if path.exists() else KeysFile([], {})
    table = {**file.rules.get(tenant, UNRESTRICTED).changed(), **changes}
    known = {spec.name for spec in fields(TenantRules)}
    kept = {name: v for name, v in table.items() if v is not None or name not in known}
    rules = _rules(tenant, kept, f"tenant {tenant}")
    _write(path, KeysFile(file.keys, {**file.rules, tenant: rules}))
    return rules


def revoke_key(path: Path, key_id: str) -> None:
    """Take a key out of the file.

    Raises:
        KeysFileError: the file is broken or holds no such id.
    """
    file = read_keys_file(path)
    kept = [row for row in file.keys if row.key_id != key_id]
    if len(kept) == len(file.keys):
        raise KeysFileError(f"no key {key_id!r} in {path}")
    _write(path, KeysFile(kept, file.rules))


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


def _rules(tenant: str, table: Any, where: str) -> TenantRules:
    if tenant != EVERYBODY and not _NAME.fullmatch(tenant):
        raise KeysFileError(f"{where}: use 1 to 64 of A-Z a-z 0-9 . _ -, or *")
    known = [spec.name for spec in fields(TenantRules)]
    if not isinstance(table, dict):
        raise KeysFileError(f"{where}: expected a table of {', '.join(known)}")
    for name in table:
        if name not in known:
            raise KeysFileError(f"{where}: unknown rule {name}; known: {', '.join(known)}")
    try:
        return msgspec.convert(table, TenantRules)
    except msgspec.ValidationError as error:
        raise KeysFileError(f"{where}: {_one_line(error)}") from None


def _one_line(error: msgspec.ValidationError) -> str:
    problem, _, place = str(error).partition(" - at `$")
    return f"{place.strip('`.')}: {problem}" if place else problem


def _write(path: Path, file: KeysFile) -> None:
    lines = ["# API keys of Strata, by hash. Change with: strata keys add | list | revoke | limit"]
    for tenant, rules in file.rules.items():
        lines += ["", f"[tenants.{json.dumps(tenant)}]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in rules.changed().items()]
    for row in file.keys:
        values = {"id": row.key_id, "tenant": row.tenant, "hash": row.hash, "created": row.created}
        lines += ["", "[[keys]]"]
        lines += [
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            written.write("\n".join(lines) + "\n")
            written.flush()
            os.fsync(written.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
