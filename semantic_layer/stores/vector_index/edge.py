"""Qdrant's engine inside this process, in one folder; the only file that names it.

Measured on 2 cores with qdrant-edge-py 0.9: a search among 10,000 × 384 of one scope takes 0.6 ms
and lets other threads run; among 50,000 it takes 3.5 ms of CPU with numbers of 16 bits, 1.2 where
those of 4 bits are read first and four times the wanted are scored again by the others (all of the
8 nearest of 100 questions found), so new shards have both (old ones what they were made with); an
update takes 40 µs a point and holds the interpreter lock, so threads gain nothing and batches are
kept short; a flush holds it for 80 ms with nothing to write and 240 ms otherwise, hence flushes are
rare; `optimize` holds it for seconds and is never called. The engine writes through memory maps, so
a full disk is a SIGBUS that ends the process: nothing is added while little is free. Source: our
measurement.
"""

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as engine

from semantic_layer.errors import StoreLocked, StoreUnavailable
from semantic_layer.stores.folder_lock import FolderLock
from semantic_layer.stores.vector_index.base import (
    COLLECTIONS,
    Neighbour,
    Place,
    Point,
    Vector,
    point_id,
)

T = TypeVar("T")

_log = logging.getLogger(__name__)

_BATCH = 16  # points of one update: under 1 ms without the event loop
_SWEEP_BATCH = 64
_INLINE_POINTS = 20_000  # a search among more is worth a thread
_HANDOVER_S = 2.0  # for a killed owner's last moments
_MIN_FREE_BYTES = 128 * 2**20
_OPEN_BYTES = 32 * 2**20  # a new shard takes 13 MB, a load less
_FREE_CHECK_S = 1.0
_OVERSAMPLING = 4.0
_FLUSH_AFTER = 5_000  # updates; until then they are safe in the log, which a load replays


class EdgeVectorIndex:
    """A `VectorIndex` in ``folder / collection``, made when absent.

    An update is in the write-ahead log when it returns, so it survives `kill -9`. A folder that
    the engine cannot read is moved aside and begun anew: the index is a cache. Points are added
    while the folder's file system has ``min_free_bytes`` free.

    Raises:
        StoreLocked: another process has the collection open.
        StoreUnavailable: the disk is too full to open it.
    """

    def __init__(
        self, folder: Path, collection: str, dim: int, *, min_free_bytes: int = _MIN_FREE_BYTES
    ) -> None:
        self._folder, self._collection = folder, collection
        self._room = _Room(folder / collection, min_free_bytes)
        self._lock = FolderLock(folder / collection, wait_s=_HANDOVER_S)
        try:
            _check_room(folder / collection)
            self._shard = _open(folder / collection / "shard", dim)
        except BaseException:
            self._lock.release()
            raise
        self._num_points = self._shard.info().points_count
        self._num_unflushed = 0

    async def upsert(self, points: Sequence[Point]) -> None:
        """Add points, replacing those of the same tenant and entry id.

        Raises:
            StoreUnavailable: also when the disk is nearly full; nothing is written then.
        """
        self._room.check()
        for start in range(0, len(points), _BATCH):
            batch = [_to_engine(point) for point in points[start : start + _BATCH]]
            self._update(engine.UpdateOperation.upsert_points(batch), len(batch))
            await asyncio.sleep(0)

    async def search(
        self, vector: Vector, *, tenant: str, scope: str, now: float, limit: int
    ) -> list[Neighbour]:
        """Return the nearest live points of this tenant and scope, most similar first.

        Expiry doubles the cost of a search, so it is left to a second one, made only when an
        expired point that no sweep has taken yet is among the nearest.
        """
        place = _is("place", _place(tenant, scope))
        hits = await self._nearest(vector, engine.Filter(must=[place]), limit)
        if any(hit.payload["expires_at"] <= now for hit in hits):
            live = engine.Filter(must=[place], must_not=[_expired_by(now)])
            hits = await self._nearest(vector, live, limit)
        return [Neighbour(hit.payload["entry_id"], max(-1.0, min(1.0, hit.score))) for hit in hits]

    async def near(
        self, vector: Vector, least_similarity: float, tenant: str | None, limit: int
    ) -> list[Place]:
        """Return the points of any scope at least so similar, most similar first."""
        request = engine.QueryRequest(
            query=engine.Query.Nearest(vector.tolist()),
            filter=None if tenant is None else engine.Filter(must=[_is("tenant", tenant)]),
            limit=limit,
            score_threshold=least_similarity,
            params=_read_finely(),
            with_payload=["tenant", "entry_id"],
        )
        hits = await asyncio.to_thread(_guarded, lambda: self._shard.query(request))
        return [Place(h.payload["tenant"], h.payload["entry_id"], h.score) for h in hits]

    async def missing(self, tenant: str, entry_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have no point here."""
        ids = {str(point_id(tenant, entry_id)): entry_id for entry_id in entry_ids}
        asked = [point_id(tenant, entry_id) for entry_id in entry_ids]
        found = _guarded(lambda: self._shard.retrieve(asked, False, False))
        there = {str(record.id) for record in found}
        return [entry_id for id_, entry_id in ids.items() if id_ not in there]

    async def delete(self, tenant: str, entry_ids: Sequence[str]) -> None:
        """Forget these points; unknown ids are ignored."""
        await self._delete([point_id(tenant, entry_id) for entry_id in entry_ids])

    async def sweep(self, now: float) -> int:
        """Delete points that expired by ``now``; return how many. Flush when it is due."""
        removed = 0
        while ids := self._expired(now):
            await self._delete(ids)
            removed += len(ids)
        if self._num_unflushed >= _FLUSH_AFTER:
            self._num_unflushed = 0
            _guarded(self._shard.flush)
        return removed

    async def retire_others(self, now: float) -> int:  # noqa: ARG002 - others look at what lives
        """Remove the collections of other embedders, unless another process has one open."""
        return await asyncio.to_thread(_retire_others, self._folder, self._collection)

    async def count(self) -> int:
        """Return the number of points."""
        return int(_guarded(lambda: self._shard.count(engine.CountRequest(exact=True))))

    async def ping(self) -> None:
        """Return when the engine answers."""
        _guarded(self._shard.info)

    async def close(self) -> None:
        """Write what is pending and let another process open the folder."""
        try:
            _guarded(self._shard.flush)
            _guarded(self._shard.close)
        finally:
            self._lock.release()

    async def _nearest(self, vector: Vector, wanted: Any, limit: int) -> list[Any]:
        request = engine.QueryRequest(
            query=engine.Query.Nearest(vector.tolist()),
            filter=wanted,
            limit=limit,
            params=_read_coarsely(),
            with_payload=["entry_id", "expires_at"],
        )
        if self._num_points <= _INLINE_POINTS:
            return _guarded(lambda: self._shard.query(request))
        return await asyncio.to_thread(_guarded, lambda: self._shard.query(request))

    async def _delete(self, ids: Sequence[Any]) -> None:
        for start in range(0, len(ids), _SWEEP_BATCH):
            batch = list(ids[start : start + _SWEEP_BATCH])
            self._update(engine.UpdateOperation.delete_points(batch), len(batch))
            await asyncio.sleep(0)

    def _expired(self, now: float) -> list[Any]:
        request = engine.ScrollRequest(
            limit=_SWEEP_BATCH,
            filter=engine.Filter(must=[_expired_by(now)]),
            with_payload=False,
            with_vector=False,
        )
        records, _ = _guarded(lambda: self._shard.scroll(request))
        return [record.id for record in records]

    def _update(self, operation: Any, num_points: int) -> None:
        _guarded(lambda: self._shard.update(operation))
        self._num_unflushed += num_points
        self._num_points = self._shard.info().points_count


class _Room:
    """The free space of a folder's file system, read at most once in `_FREE_CHECK_S`."""

    def __init__(self, folder: Path, min_free_bytes: int) -> None:
        self._folder = folder
        self._min_free_bytes = min_free_bytes
        self._free_bytes = 0
        self._read_again_at = 0.0

    def check(self) -> None:
        """Return when there is room.

        Raises:
            StoreUnavailable: there is less than the limit, or it cannot be told.
        """
        now = time.monotonic()
        if now >= self._read_again_at:
            self._free_bytes = _guarded(lambda: shutil.disk_usage(self._folder).free)
            self._read_again_at = now + _FREE_CHECK_S
        if self._free_bytes < self._min_free_bytes:
            raise StoreUnavailable(
                f"vector index: the disk of {self._folder} has {self._free_bytes} bytes free, "
                f"fewer than {self._min_free_bytes}"
            )


def _open(path: Path, dim: int) -> Any:
    """Load the shard; make one under another name first, so that a kill leaves none half made."""
    config = _config(dim, engine.VectorStorageDatatype.Float16)
    if path.exists():
        try:
            return _guarded(lambda: engine.EdgeShard.load(str(path), None))
        except StoreUnavailable as error:
            aside = path.with_name(f"unreadable-{time.time_ns()}")
            _log.warning("vector index moved to %s: %s", aside, error)
            path.rename(aside)
    _make(path, config)
    return _guarded(lambda: engine.EdgeShard.load(str(path), config))


def _config(dim: int, datatype: Any) -> Any:
    coarse = engine.TurboQuantQuantizationConfig(
        bits=engine.TurboQuantBitSize.Bits4, memory=engine.Memory.Pinned
    )
    vectors = engine.EdgeVectorParams(
        size=dim,
        distance=engine.Distance.Cosine,
        datatype=datatype,
        quantization_config=coarse,
    )
    return engine.EdgeConfig(vectors=vectors)


def _read_finely() -> Any:
    """Have every point scored by its own numbers."""
    return engine.SearchParams(quantization=engine.QuantizationSearchParams(ignore=True))


def _read_coarsely() -> Any:
    """Have more points than wanted chosen by their coarse numbers, then scored by their own."""
    again = engine.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLING)
    return engine.SearchParams(quantization=again)


def _check_room(folder: Path) -> None:
    """See that the disk can hold what the engine maps: writing to a map on a full one ends us.

    Raises:
        StoreUnavailable: it can't.
    """
    free = _guarded(lambda: shutil.disk_usage(folder).free)
    if free < _OPEN_BYTES:
        raise StoreUnavailable(
            f"vector index: the disk of {folder} has {free >> 20} MiB free, and {_OPEN_BYTES >> 20}"
            " MiB are needed to open it: free some, or set data_dir (STRATA_DATA_DIR) to another"
        )


def _make(path: Path, config: Any) -> None:
    draft = path.with_name(f"draft-{time.time_ns()}")
    draft.mkdir(parents=True)
    shard = _guarded(lambda: engine.EdgeShard.create(str(draft), config))
    for field, schema in (
        ("place", engine.KeywordIndexParams(is_tenant=True)),
        ("expires_at", engine.FloatIndexParams()),
    ):
        shard.update(engine.UpdateOperation.create_field_index(field, schema))
    shard.flush()
    shard.close()
    draft.rename(path)


def _retire_others(folder: Path, kept: str) -> int:
    num_removed = 0
    for other in folder.glob(f"{COLLECTIONS}*"):
        if other.name == kept or not other.is_dir():
            continue
        try:
            lock = FolderLock(other)
        except StoreLocked:
            continue
        try:
            shutil.rmtree(other)
            folder.joinpath(f"{other.name}.feed").unlink(missing_ok=True)
            num_removed += 1
        except OSError as error:
            raise StoreUnavailable(f"vector index: {error}") from error
        finally:
            lock.release()
    return num_removed


def _guarded(call: Callable[[], T]) -> T:
    """Turn what the engine raises, a bare `Exception` or a Rust panic, into a named error."""
    try:
        return call()
    except Exception as error:
        raise StoreUnavailable(f"vector index: {error}") from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # the binding does not export it
            raise StoreUnavailable(f"vector index: {error}") from error
        raise


def _to_engine(point: Point) -> Any:
    payload = {
        "entry_id": point.entry_id,
        "place": _place(point.tenant, point.scope),
        "tenant": point.tenant,
        "scope": point.scope,
        "intent": point.intent,
        "expires_at": point.expires_at,
        "tags": list(point.tags),
    }
    return engine.Point(point_id(point.tenant, point.entry_id), point.vector.tolist(), payload)


def _is(field: str, value: str) -> Any:
    return engine.FieldCondition(field, match=engine.MatchValue(value))


def _expired_by(now: float) -> Any:
    return engine.FieldCondition("expires_at", range=engine.RangeFloat(lte=now))


def _place(tenant: str, scope: str) -> str:
    """Return tenant and scope as one value: one condition costs half of two."""
    return f"{len(tenant)}:{tenant}:{scope}"
