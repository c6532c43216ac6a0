"""The prompts of late, so that a miss can be explained by what it nearly hit. Bounded memory.

Knows token ids and digests of turns. Only digests are ever written to disk.
"""

import os
from array import array
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec
import numpy as np
from numpy.typing import NDArray

GRAM = 4  # tokens that count as the same text when they follow each other elsewhere
MAX_SAVED = 1024
MAX_OTHERS = 8
SAVED_TURNS = 2
_DIGEST_BYTES = 8

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SeenPrompt:
    """One prompt, with the answer behind it once that is complete; ``turns`` digests messages."""

    salt: bytes
    token_ids: "array[int]"
    turns: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """How much of a prompt another one has: leading tokens, and tokens of what lies behind."""

    seen: SeenPrompt
    num_common: int
    num_behind: int

    @property
    def num_reusable(self) -> int:
        """Tokens that could be reused if the difference were not there."""
        return self.num_common + self.num_behind


class _Former(msgspec.Struct, frozen=True):
    """A prompt of an earlier run: whose, of what model, and what it said, as digests."""

    fingerprint: str
    tenant: bytes
    turns: tuple[bytes, ...]


class RecentPrompts:
    """The last prompts, at most ``max_prompts`` and ``max_tokens`` of them; thread-safe.

    Prompts are known ``since`` it was made; of earlier ones only digests are.
    """

    def __init__(self, max_prompts: int = 2048, max_tokens: int = 1 << 21) -> None:
        self.since = datetime.now(UTC)
        self._max_prompts = max_prompts
        self._max_tokens = max_tokens
        self._num_tokens = 0
        self._seen: OrderedDict[bytes, SeenPrompt] = OrderedDict()
        self._former: list[_Former] = []
        self._lock = Lock()

    def record(
        self,
        salt: bytes,
        prompt: Sequence[int],
        turns: tuple[bytes, ...],
        generated: Sequence[int] = (),
    ) -> None:
        """Remember a prompt, or what was generated behind it."""
        ids = array("i", prompt)
        key = blake2b(ids.tobytes(), key=salt, digest_size=16).digest()
        ids.extend(generated)
        with self._lock:
            self._forget(key)
            self._seen[key] = SeenPrompt(salt, ids, turns)
            self._num_tokens += len(ids)
            while len(self._seen) > self._max_prompts or self._num_tokens > self._max_tokens:
                self._forget(next(iter(self._seen)))

    def nearest(self, salts: Collection[bytes], prompt: Sequence[int]) -> Nearest | None:
        """Find the prompt under these salts that shares most with ``prompt``, edits left out."""
        ids = np.asarray(prompt, dtype=np.int64)
        found: Nearest | None = None
        for seen in reversed(self._all()):
            if seen.salt not in salts:
                continue
            nearest = _compare(ids, seen)
            if found is None or _rank(nearest) > _rank(found):
                found = nearest
        return found

    def of_others(self, salts: Collection[bytes], prompt: Sequence[int]) -> list[Nearest]:
        """List other tenants' prompts that begin as ``prompt`` does, one each, longest first."""
        ids = np.asarray(prompt, dtype=np.int64)
        longest: dict[bytes, Nearest] = {}
        for seen in self._all():
            if seen.salt in salts:
                continue
            nearest = Nearest(seen, _num_common(ids, _array(seen)), 0)
            if seen.salt not in longest or nearest.num_common > longest[seen.salt].num_common:
                longest[seen.salt] = nearest
        return sorted(longest.values(), key=lambda n: -n.num_common)[:MAX_OTHERS]

    def former_models(self, salt: bytes, turns: Sequence[bytes], fingerprint: str) -> list[str]:
        """List other models, last first, that were asked with the same first message before."""
        tenant = _tenant(salt)
        return [
            former.fingerprint
            for former in reversed(self._former)
            if former.fingerprint != fingerprint
            and former.tenant == tenant
            and former.turns[:1] == tuple(turns[:1])
        ]

    def was_known(self, salt: bytes, turns: Sequence[bytes], fingerprint: str) -> bool:
        """Say whether an earlier run of this model was asked with the same first messages."""
        begun = tuple(turns[:SAVED_TURNS])
        return bool(begun) and _Former(fingerprint, _tenant(salt), begun) in self._former

    def save(self, path: Path, fingerprint: str) -> None:
        """Write digests of the last prompts, for `load`; a full or read-only disk is no error."""
        now = [_Former(fingerprint, _tenant(s.salt), s.turns[:SAVED_TURNS]) for s in self._all()]
        unique = list(dict.fromkeys([*self._former, *now]))[-MAX_SAVED:]
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            temporary.write_bytes(msgspec.msgpack.encode(unique))
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)

    def load(self, path: Path) -> None:
        """Read what an earlier run saved; a missing or broken file counts as empty."""
        try:
            self._former = msgspec.msgpack.decode(path.read_bytes(), type=list[_Former])
        except (OSError, msgspec.MsgspecError):
            self._former = []

    def _all(self) -> list[SeenPrompt]:
        with self._lock:
            return list(self._seen.values())

    def _forget(self, key: bytes) -> None:
        seen = self._seen.pop(key, None)
        if seen is not None:
            self._num_tokens -= len(seen.token_ids)


def _rank(nearest: Nearest) -> tuple[int, int]:
    return nearest.num_reusable, nearest.num_common


def _compare(ids: Ids, seen: SeenPrompt) -> Nearest:
    theirs = _array(seen)
    common = _num_common(ids, theirs)
    behind = int(np.isin(_grams(ids[common:]), _grams(theirs[common:])).sum())
    return Nearest(seen, common, behind)


def _array(seen: SeenPrompt) -> Ids:
    return np.frombuffer(seen.token_ids, dtype=np.int32).astype(np.int64)


def _num_common(a: Ids, b: Ids) -> int:
    count = min(len(a), len(b))
    differs = np.flatnonzero(a[:count] != b[:count])
    return int(differs[0]) if len(differs) else count


def _grams(ids: Ids) -> Ids:
    """Hash every run of `GRAM` tokens."""
    if len(ids) < GRAM:
        return ids[:0]
    hashed = np.zeros(len(ids) - GRAM + 1, dtype=np.int64)
    for at in range(GRAM):
        hashed = hashed * 1_000_003 + ids[at : at + len(hashed)]
    return hashed


def _tenant(salt: bytes) -> bytes:
    return blake2b(salt, digest_size=_DIGEST_BYTES, person=b"strata.former").digest()


def digest_turns(history: Sequence[dict[str, object]]) -> tuple[bytes, ...]:
    """Digest each message of a conversation by itself."""
    return tuple(
        blake2b(msgspec.json.encode(message), digest_size=_DIGEST_BYTES).digest()
        for message in history
    )
