"""What only the embedded engine and the server's adapter can get wrong: disks, deaths, outages."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from qdrant_client import AsyncQdrantClient

from semantic_layer.errors import StoreLocked, StoreUnavailable
from semantic_layer.stores.vector_index import collection_name, edge
from semantic_layer.stores.vector_index.edge import EdgeVectorIndex
from semantic_layer.stores.vector_index.server import ServerVectorIndex, connect
from tests.fakes.stores import DIM, Clock, make_point, unit

NOW = Clock().now

WRITER = """
import asyncio, sys
from pathlib import Path
from semantic_layer.stores.vector_index.edge import EdgeVectorIndex
from tests.fakes.stores import DIM, make_point, unit

async def main():
    index = EdgeVectorIndex(Path(sys.argv[1]), "c", DIM)
    await index.upsert([make_point(f"{n}", unit(1, n)) for n in range(300)])
    await index.delete("public", ["7"])
    print("written", flush=True)
    sys.stdin.read()

asyncio.run(main())
"""


async def nearest(index: EdgeVectorIndex | ServerVectorIndex, limit: int = 3) -> list[str]:
    hits = await index.search(unit(1), tenant="public", scope="s", now=NOW, limit=limit)
    return [hit.entry_id for hit in hits]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_points_survive_when_the_index_is_opened_again(tmp_path: Path) -> None:
    """Closing and opening keeps every point, its payload and its filters."""
    first = EdgeVectorIndex(tmp_path, "c", DIM)
    await first.upsert([make_point(f"{n}", unit(1, n)) for n in range(100)])
    await first.close()
    second = EdgeVectorIndex(tmp_path, "c", DIM)
    assert await second.count() == 100
    assert await nearest(second) == ["0", "1", "2"]
    assert await second.sweep(NOW + 10_000) == 100
    await second.close()


async def test_points_survive_when_they_have_32_bits_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard made with whole numbers is opened as it is, and takes new points."""
    full = edge._config(DIM, edge.engine.VectorStorageDatatype.Float32)
    with monkeypatch.context() as patch:
        patch.setattr(edge, "_config", lambda *_: full)
        old = EdgeVectorIndex(tmp_path, "c", DIM)
        await old.upsert([make_point(f"{n}", unit(1, n)) for n in range(20)])
        await old.close()
    new = EdgeVectorIndex(tmp_path, "c", DIM)
    await new.upsert([make_point("20", unit(1, 20))])
    assert await new.count() == 21
    assert await nearest(new) == ["0", "1", "2"]
    await new.close()


def test_points_survive_when_the_process_is_killed(tmp_path: Path) -> None:
    """What an update returned for is there after `kill -9`, and the folder opens at once."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        with pytest.raises(StoreLocked, match=f"process {writer.pid}"):
            EdgeVectorIndex(tmp_path, "c", DIM)
        writer.send_signal(signal.SIGKILL)

    async def check() -> None:
        index = EdgeVectorIndex(tmp_path, "c", DIM)
        assert await index.count() == 299
        assert await nearest(index, 9) == ["0", "1", "2", "3", "4", "5", "6", "8", "9"]
        await index.upsert([make_point("new", unit(1))])
        await index.close()

    asyncio.run(check())


async def test_opening_refuses_when_the_collection_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two owners of one folder are one too many; after closing it is free."""
    monkeypatch.setattr(edge, "_HANDOVER_S", 0.05)
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    with pytest.raises(StoreLocked, match=f"in use by process {os.getpid()}"):
        EdgeVectorIndex(tmp_path, "c", DIM)
    await index.close()
    await EdgeVectorIndex(tmp_path, "c", DIM).close()


async def test_vectors_never_mix_when_the_embedder_changes(tmp_path: Path) -> None:
    """Another fingerprint or dimension is another collection; going back finds the old one."""
    old_name, new_name = collection_name("old", DIM), collection_name("new", DIM)
    old = EdgeVectorIndex(tmp_path, old_name, DIM)
    await old.upsert([make_point("e", unit(1))])
    await old.close()
    new = EdgeVectorIndex(tmp_path, new_name, DIM)
    assert await new.count() == 0
    await new.close()
    again = EdgeVectorIndex(tmp_path, old_name, DIM)
    assert await nearest(again) == ["e"]
    await again.close()


async def test_index_begins_anew_when_its_files_are_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Unreadable files are kept aside and said so; the cache goes on empty."""
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    await index.upsert([make_point("e", unit(1))])
    await index.close()
    for file in (tmp_path / "c" / "shard").rglob("segment.json"):
        file.write_text("{")
    (tmp_path / "c" / "shard" / "edge_config.json").write_text("{")
    fresh = EdgeVectorIndex(tmp_path, "c", DIM)
    assert await fresh.count() == 0
    await fresh.upsert([make_point("e", unit(1))])
    assert await nearest(fresh) == ["e"]
    assert len(list((tmp_path / "c").glob("unreadable-*"))) == 1
    assert "vector index moved" in caplog.text
    await fresh.close()


async def test_closed_index_raises_the_named_error_when_used(tmp_path: Path) -> None:
    """The engine's bare exceptions do not get out."""
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    await index.close()
    for call in (
        index.count(),
        index.ping(),
        nearest(index),
        index.upsert([make_point("e", unit(1))]),
    ):
        with pytest.raises(StoreUnavailable):
            await call


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "kept"])
def test_opening_is_refused_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    """A map written on a full disk would end the process without a word; nothing is locked."""
    if is_there:
        asyncio.run(EdgeVectorIndex(tmp_path, "c", DIM).close())
    room = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: room._replace(free=12 * 2**20))
        with pytest.raises(StoreUnavailable, match=r"12 MiB free.*STRATA_DATA_DIR"):
            EdgeVectorIndex(tmp_path, "c", DIM)
    asyncio.run(EdgeVectorIndex(tmp_path, "c", DIM).close())


async def test_points_are_refused_when_the_disk_is_nearly_full(tmp_path: Path) -> None:
    """A full disk would end the process; what is there is still found, and can go."""
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    await index.upsert([make_point("e", unit(1))])
    await index.close()
    full = EdgeVectorIndex(tmp_path, "c", DIM, min_free_bytes=2**63)
    with pytest.raises(StoreUnavailable, match="bytes free"):
        await full.upsert([make_point("e2", unit(1))])
    assert await full.count() == 1
    assert await nearest(full) == ["e"]
    await full.delete("public", ["e"])
    assert await full.count() == 0
    await full.close()


async def test_index_is_flushed_when_enough_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep flushes after many updates only, as a flush stops every thread."""
    monkeypatch.setattr(edge, "_FLUSH_AFTER", 50)
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    await index.upsert([make_point(f"{n}", unit(1, n)) for n in range(49)])
    await index.sweep(NOW)
    assert index._num_unflushed == 49
    await index.upsert([make_point("e", unit(1))])
    await index.sweep(NOW)
    assert index._num_unflushed == 0
    await index.close()


async def test_search_works_in_a_thread_when_the_index_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the limit the event loop is left free; the answers are the same."""
    monkeypatch.setattr(edge, "_INLINE_POINTS", 10)
    index = EdgeVectorIndex(tmp_path, "c", DIM)
    await index.upsert([make_point(f"{n}", unit(1, n)) for n in range(50)])
    results = await asyncio.gather(*(nearest(index) for _ in range(20)))
    assert results == [["0", "1", "2"]] * 20
    await index.close()


async def test_server_index_raises_the_named_error_when_nothing_listens() -> None:
    """An absent server costs the call, not the start."""
    index = ServerVectorIndex(connect("http://127.0.0.1:9", timeout_s=1), "c", DIM)
    with pytest.raises(StoreUnavailable):
        await nearest(index)
    with pytest.raises(StoreUnavailable):
        await index.ping()
    await index.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
async def test_server_index_makes_its_collection_when_it_was_lost() -> None:
    """A server that came back empty costs one call."""
    client = AsyncQdrantClient(":memory:")
    index = ServerVectorIndex(client, "c", DIM)
    await index.upsert([make_point("e", unit(1))])
    await client.delete_collection("c")
    with pytest.raises(StoreUnavailable):
        await nearest(index)
    await index.upsert([make_point("e2", unit(1))])
    assert await nearest(index) == ["e2"]
    await index.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
async def test_server_index_keeps_all_when_first_calls_meet() -> None:
    """Concurrent first calls do not fight over making the collection."""
    index = ServerVectorIndex(AsyncQdrantClient(":memory:"), "c", DIM)
    await asyncio.gather(*(index.upsert([make_point(f"{n}", unit(1, n))]) for n in range(20)))
    assert await index.count() == 20
    await index.close()


async def test_old_collections_go_when_nobody_has_them_open(tmp_path: Path) -> None:
    """What another embedder left is removed from the disk; what another process uses is not."""
    old, used, own = (
        EdgeVectorIndex(tmp_path, collection_name(name, DIM), DIM) for name in ("a", "b", "c")
    )
    await old.upsert([make_point("1", unit(1))])
    await old.close()
    (tmp_path / f"{collection_name('a', DIM)}.feed").write_text("1-0")
    (tmp_path / "notes").mkdir()
    await own.upsert([make_point("2", unit(1))])
    assert await own.retire_others(NOW) == 1
    kept = {collection_name("b", DIM), collection_name("c", DIM), "notes"}
    assert names(tmp_path) == kept
    assert await nearest(own) == ["2"]
    await used.close()
    assert await own.retire_others(NOW) == 1
    await own.close()


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")
async def test_old_collections_of_a_server_go_when_nothing_lives_in_them() -> None:
    """Another gateway may still use its own embedder: only what has expired is removed."""
    client = AsyncQdrantClient(":memory:")
    old, own = (ServerVectorIndex(client, collection_name(name, DIM), DIM) for name in ("a", "b"))
    await client.create_collection("others", vectors_config={})
    await old.upsert([make_point("1", unit(1))])
    await own.upsert([make_point("2", unit(1))])
    assert await own.retire_others(NOW) == 0
    assert await own.retire_others(NOW + 10_000) == 1
    left = {each.name for each in (await client.get_collections()).collections}
    assert left == {collection_name("b", DIM), "others"}
    await own.close()
