"""Intents' policies: set by an operator on one gateway, in force on all of them within a second.

A policy is replaced as a whole, never in part. What was changed, when and by whom is kept.
"""

import time
from collections.abc import Callable, Sequence

import msgspec

from semantic_layer import IntentPolicies, IntentPolicy, Journal, Row

INTENTS = "intents"
CHANGES = "changes"
MAX_INTENTS = 1000
MAX_CHANGES = 2000


class VersionConflict(Exception):
    """The policy is not the one the caller saw."""


class PolicyUnreadable(Exception):
    """The policy that would be replaced is kept, but cannot be read here."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of an intent's policy; None is the default. ``at`` is Unix seconds."""

    intent: str
    at: float
    actor: str
    before: IntentPolicy | None
    after: IntentPolicy | None
    version: int


_encode = msgspec.msgpack.Encoder().encode
_decode_policy = msgspec.msgpack.Decoder(IntentPolicy).decode
_decode_change = msgspec.msgpack.Decoder(Change).decode


class IntentDesk:
    """Reads and writes the policies; a `Reader` of their journal.

    ``on_change`` is told all policies whenever one changed here or elsewhere.

    Raises:
        StoreUnavailable: from any coroutine, when the store is slow or down.
    """

    def __init__(
        self,
        journal: Journal,
        on_change: Callable[[IntentPolicies], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._on_change = on_change
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._policies = IntentPolicies()

    @property
    def policies(self) -> IntentPolicies:
        """The policies in force."""
        return self._policies

    def policy(self, intent: str) -> IntentPolicy | None:
        """Return the intent's policy; None is the default."""
        return self._policies.by_intent.get(intent)

    def version(self, intent: str) -> int:
        """Return what changes with every change of the intent's policy; 0 before the first."""
        row = self._rows.get(intent)
        return row.seq if row else 0

    def is_unreadable(self, intent: str) -> bool:
        """Say whether a policy is kept that another key sealed, or another version wrote."""
        row = self._rows.get(intent)
        return row is not None and (row.is_shut or (bool(row.data) and not _read_policy(row.data)))

    async def put(
        self,
        intent: str,
        policy: IntentPolicy | None,
        *,
        actor: str,
        expected: int | None = None,
        may_lose: bool = False,
    ) -> None:
        """Replace a policy; None returns to the default.

        Raises:
            VersionConflict: the policy's version is not the expected one.
            PolicyUnreadable: it cannot be read, and ``may_lose`` is not set.
        """
        if self.is_unreadable(intent) and not may_lose:
            raise PolicyUnreadable
        before, data = self.policy(intent), b"" if policy is None else _encode(policy)
        version = await self._write(intent, data, expected)
        self.take([Row(intent, version, data)])
        change = Change(
            intent=intent,
            at=self._clock(),
            actor=actor,
            before=before,
            after=policy,
            version=version,
        )
        row_id = f"{intent}:{version}:{change.at:.3f}"  # versions begin anew in another store
        await self._journal.put(CHANGES, {row_id: _encode(change)}, most=MAX_CHANGES)

    async def changes(self, intent: str | None, limit: int) -> list[Change]:
        """Return the latest changes, newest first; of one intent, or of all."""
        rows = await self._journal.before(CHANGES, None, MAX_CHANGES)
        read = [change for row in rows if (change := _read_change(row.data))]
        found = [change for change in read if intent in (None, change.intent)]
        return sorted(found, key=lambda change: (change.version, change.at), reverse=True)[:limit]

    def take(self, rows: Sequence[Row]) -> None:
        """Learn of policies, oldest first."""
        for row in rows:
            if row.seq > self.version(row.row_id):
                self._rows[row.row_id] = row
        self._tell()

    def forget(self) -> None:
        """Return every intent to the default."""
        self._rows.clear()
        self._tell()

    async def _write(self, intent: str, data: bytes, expected: int | None) -> int:
        if expected is None:
            return await self._journal.put(INTENTS, {intent: data}, most=MAX_INTENTS)
        version = await self._journal.swap(INTENTS, intent, data, expected=expected)
        if version is None:
            raise VersionConflict
        return version

    def _tell(self) -> None:
        read = {name: _read_policy(row.data) for name, row in self._rows.items()}
        found = {name: policy for name, policy in read.items() if policy is not None}
        if found != self._policies.by_intent:
            self._policies = IntentPolicies(found)
            self._on_change(self._policies)


def from_another_store(data: bytes) -> bytes:
    """Return a change as another store's history holds it: its version counts for nothing there."""
    change = _read_change(data)
    return data if change is None else _encode(msgspec.structs.replace(change, version=0))


def _read_policy(data: bytes) -> IntentPolicy | None:
    """Return a policy; None for one taken back, and for what another version wrote."""
    try:
        return _decode_policy(data) if data else None
    except msgspec.MsgspecError:
        return None


def _read_change(data: bytes) -> Change | None:
    try:
        return _decode_change(data)
    except msgspec.MsgspecError:
        return None
