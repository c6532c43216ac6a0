"""What a vector index does, whatever engine searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]
COLLECTIONS = "responses-"  # how the names of all collections begin


@dataclass(frozen=True, slots=True)
class Point:
    """One embedded text and what it may be found by. ``vector`` is a unit row, ``(dim,)``."""

    entry_id: str
    tenant: str
    scope: str
    intent: str | None
    expires_at: float
    tags: tuple[str, ...]
    vector: Vector


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An entry near the asked vector. ``similarity`` is the cosine, -1..1."""

    entry_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of any tenant near the asked vector. ``similarity`` is the cosine, -1..1."""

    tenant: str
    entry_id: str
    similarity: float


class VectorIndex(Protocol):
    """Finds entries by the likeness of their text, inside one tenant and scope.

    Raises:
        StoreUnavailable: from any method, when the engine is slow or down.
    """

    async def upsert(self, points: Sequence[Point]) -> None:
        """Add points, replacing those of the same tenant and entry id."""
        ...

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Return the nearest live points of this tenant and scope, most similar first."""
        ...

    async def near(
        self, vector: Vector, least_similarity: float, tenant: str | None, limit: int
    ) -> list[Place]:
        """Return the points of any scope at least so similar, most similar first."""
        ...

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point here."""
        ...

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget these points; unknown ids are ignored."""
        ...

    async def sweep(self, now: float) -> int:
        """Delete points that expired by ``now``; return how many."""
        ...

    async def retire_others(self, now: float) -> int:
        """Remove the collections of other embedders that nobody needs; return how many."""
        ...

    async def count(self) -> int:
        """Return the number of points, expired ones included until the next sweep."""
        ...

    async def ping(self) -> None:
        """Return when the engine answers."""
        ...

    async def close(self) -> None:
        """Write what is pending and release the engine; the index is not used afterwards."""
        ...


def point_id(tenant: str, entry_id: str) -> UUID:
    """Return the point's UUID: 128 bits of blake2b over length-prefixed tenant and id."""
    name = tenant.encode("utf-8", "surrogatepass")
    digest = blake2b(len(name).to_bytes(8, "big") + name, digest_size=16)
    digest.update(entry_id.encode("utf-8", "surrogatepass"))
    return UUID(bytes=digest.digest())


def collection_name(embedder_fingerprint: str, dim: int) -> str:
    """Return a name that no other embedder shares, so vectors of two models never mix."""
    digest = blake2b(embedder_fingerprint.encode(), digest_size=6).hexdigest()
    return f"{COLLECTIONS}{digest}-{dim}"
