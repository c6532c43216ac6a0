"""Vectors in this process's memory, searched by multiplication; nothing kept over a restart."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from semantic_layer.stores.vector_index.base import Neighbour, Place, Point, Vector

_Key = tuple[str, str]  # tenant, entry id
_Place = tuple[str, str]  # tenant, scope


class MemoryVectorIndex:
    """Keeps up to ``max_points``; the least recently added or found goes first."""

    def __init__(self, dim: int, max_points: int = 100_000) -> None:
        self._max_points = max_points
        self._vectors = np.zeros((64, dim), dtype=np.float32)
        self._expires_at = np.zeros(64, dtype=np.float64)
        self._keys: list[_Key | None] = [None] * 64
        self._free = list(range(63, -1, -1))
        self._rows: OrderedDict[_Key, int] = OrderedDict()
        self._places: dict[_Key, _Place] = {}
        self._members: dict[_Place, set[int]] = {}

    async def upsert(self, points: Sequence[Point]) -> None:
        """Add points, replacing those of the same tenant and entry id."""
        for point in points:
            self._drop((point.tenant, point.entry_id))
            self._add(point)

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Return the nearest live points of this tenant and scope, most similar first."""
        rows = self._live_rows((tenant, scope), now)
        similarities = self._vectors[rows] @ np.asarray(vector, dtype=np.float32)
        best = np.argsort(-similarities, kind="stable")[:limit]
        return [self._neighbour(int(rows[i]), float(similarities[i])) for i in best]

    async def near(
        self, vector: Vector, least_similarity: float, tenant: str | None, limit: int
    ) -> list[Place]:
        """Return the points of any scope at least so similar, most similar first."""
        keys = [key for key in self._rows if tenant in (None, key[0])]
        rows = np.array([self._rows[key] for key in keys], dtype=np.intp)
        similarities = self._vectors[rows] @ np.asarray(vector, dtype=np.float32)
        best = np.argsort(-similarities, kind="stable")[:limit]
        return [
            Place(keys[i][0], keys[i][1], float(similarities[i]))
            for i in best
            if similarities[i] >= least_similarity
        ]

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point here."""
        return [entry_id for entry_id in entry_ids if (tenant, entry_id) not in self._rows]

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget these points; unknown ids are ignored."""
        for entry_id in entry_ids:
            self._drop((tenant, entry_id))

    async def sweep(self, now: float) -> int:
        """Delete points that expired by ``now``; return how many."""
        expired = [key for key, row in self._rows.items() if self._expires_at[row] <= now]
        for key in expired:
            self._drop(key)
        return len(expired)

    async def retire_others(self, now: float) -> int:  # noqa: ARG002 - there are no others
        """Remove nothing: what is in memory is one embedder's."""
        return 0

    async def count(self) -> int:
        """Return the number of points."""
        return len(self._rows)

    async def ping(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Forget everything."""
        for key in list(self._rows):
            self._drop(key)

    def _live_rows(self, place: _Place, now: float) -> npt.NDArray[np.intp]:
        rows = np.fromiter(self._members.get(place, ()), dtype=np.intp)
        return rows[self._expires_at[rows] > now]

    def _neighbour(self, row: int, similarity: float) -> Neighbour:
        key = self._keys[row]
        assert key is not None
        self._rows.move_to_end(key)
        return Neighbour(key[1], max(-1.0, min(1.0, similarity)))

    def _add(self, point: Point) -> None:
        if len(self._rows) >= self._max_points:
            self._drop(next(iter(self._rows)))
        if not self._free:
            self._grow()
        row, key = self._free.pop(), (point.tenant, point.entry_id)
        self._vectors[row], self._expires_at[row] = point.vector, point.expires_at
        self._keys[row], self._rows[key] = key, row
        self._places[key] = place = (point.tenant, point.scope)
        self._members.setdefault(place, set()).add(row)

    def _drop(self, key: _Key) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        place = self._places.pop(key)
        members = self._members[place]
        members.remove(row)
        if not members:
            del self._members[place]
        self._keys[row] = None
        self._free.append(row)

    def _grow(self) -> None:
        size = len(self._keys)
        self._vectors = np.concatenate([self._vectors, np.zeros_like(self._vectors)])
        self._expires_at = np.concatenate([self._expires_at, np.zeros(size)])
        self._keys += [None] * size
        self._free = list(range(2 * size - 1, size - 1, -1))
