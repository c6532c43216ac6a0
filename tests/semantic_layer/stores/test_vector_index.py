"""The contract of `VectorIndex`, over every implementation and the real engine."""

import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from qdrant_client import AsyncQdrantClient

from semantic_layer.stores.vector_index import (
    MemoryVectorIndex,
    VectorIndex,
    collection_name,
    open_vector_index,
    point_id,
)
from semantic_layer.stores.vector_index.edge import EdgeVectorIndex
from semantic_layer.stores.vector_index.server import ServerVectorIndex, connect
from tests.fakes.stores import DIM, Clock, make_point, unit

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
]

NOW = Clock().now
CRAFTED = ["a", "a:b", "a%3Ab", "a\n", "a b", "", "{a}", "ä", "公司", "a\x00b"]


SERVER_URL = os.environ.get("STRATA_TEST_QDRANT_URL")
INDEXES = ["memory", "edge", "local", *(["server"] if SERVER_URL else [])]


@pytest_asyncio.fixture(params=INDEXES)
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    """Memory, the embedded engine, the server's adapter in local mode, and a server if named."""
    made: VectorIndex
    match request.param:
        case "memory":
            made = MemoryVectorIndex(DIM)
        case "edge":
            made = EdgeVectorIndex(tmp_path, "c", DIM)
        case "local":
            made = ServerVectorIndex(AsyncQdrantClient(":memory:"), "c", DIM)
        case _:
            made = ServerVectorIndex(connect(str(SERVER_URL)), f"test-{uuid.uuid4().hex}", DIM)
    yield made
    await made.close()


async def found(index: VectorIndex, vector: np.ndarray, **fields: object) -> list[str]:
    query = {"tenant": "public", "scope": "s", "now": NOW, "limit": 5} | fields
    return [hit.entry_id for hit in await index.search(vector, **query)]  # type: ignore[arg-type]


async def test_nearest_come_first_when_points_differ(index: VectorIndex) -> None:
    """Similarity is the cosine, most similar first, at most as many as asked."""
    near, far, opposite = unit(1, 0.2), unit(0, 1), unit(-1)
    await index.upsert(
        [make_point("far", far), make_point("opposite", opposite), make_point("near", near)]
    )
    hits = await index.search(unit(1), tenant="public", scope="s", now=NOW, limit=10)
    assert [hit.entry_id for hit in hits] == ["near", "far", "opposite"]
    expected = [float(unit(1) @ vector) for vector in (near, far, opposite)]
    assert [hit.similarity for hit in hits] == pytest.approx(expected, abs=2e-4)
    assert all(-1.0 <= hit.similarity <= 1.0 for hit in hits)
    assert await found(index, unit(1), limit=1) == ["near"]


async def test_nothing_is_found_when_the_index_is_empty(index: VectorIndex) -> None:
    """An empty index, an unknown tenant and an unknown scope all answer with nothing."""
    assert await found(index, unit(1)) == []
    await index.upsert([make_point("a", unit(1))])
    assert await found(index, unit(1), tenant="other") == []
    assert await found(index, unit(1), scope="other") == []
    await index.upsert([])
    await index.delete("public", [])
    assert await index.count() == 1


async def test_tenants_never_meet_when_names_are_crafted(index: VectorIndex) -> None:
    """The same id and vector under each name is found under that name alone."""
    await index.upsert(
        [make_point("e", unit(1, number), tenant=t) for number, t in enumerate(CRAFTED)]
    )
    await index.upsert([make_point("own", unit(1), tenant=t, scope=t) for t in CRAFTED])
    for tenant in CRAFTED:
        assert await found(index, unit(1), tenant=tenant) == ["e"]
        assert await found(index, unit(1), tenant=tenant, scope=tenant) == ["own"]
    await index.delete("a", ["e", "own"])
    assert await index.count() == 2 * len(CRAFTED) - 2
    assert await found(index, unit(1), tenant="a:b") == ["e"]


async def test_scopes_never_meet_when_tenant_and_scope_read_the_same_joined(
    index: VectorIndex,
) -> None:
    """Where the tenant ends and the scope begins is never a guess."""
    places = [("a", "b:s"), ("a:b", "s"), ("a:b:s", ""), ("", "a:b:s"), ("1:a", "s"), ("1", "a:s")]
    await index.upsert(
        [make_point(f"{n}", unit(1), tenant=t, scope=s) for n, (t, s) in enumerate(places)]
    )
    for number, (tenant, scope) in enumerate(places):
        assert await found(index, unit(1), tenant=tenant, scope=scope) == [f"{number}"]


async def test_expired_best_match_does_not_hide_the_next(index: VectorIndex) -> None:
    """Expiry is judged inside the search, exactly at its time, not among its results."""
    await index.upsert([make_point(f"old{n}", unit(1), expires_at=NOW) for n in range(20)])
    await index.upsert([make_point("live", unit(1, 0.5), expires_at=NOW + 0.001)])
    assert await found(index, unit(1), limit=1) == ["live"]
    assert await found(index, unit(1), limit=1, now=NOW + 0.001) == []
    assert len(await found(index, unit(1), limit=30, now=NOW - 0.001)) == 21


async def test_newer_point_wins_when_upserted_twice(index: VectorIndex) -> None:
    """A replaced point has the new vector, scope and lifetime, and is counted once."""
    await index.upsert([make_point("e", unit(1)), make_point("other", unit(0, 1))])
    await index.upsert([make_point("e", unit(0, 0, 1), scope="t", expires_at=NOW + 9999)])
    assert await found(index, unit(1)) == ["other"]
    assert await found(index, unit(0, 0, 1), scope="t", now=NOW + 9000) == ["e"]
    assert await index.count() == 2


async def test_deleted_points_are_not_found_when_others_stay(index: VectorIndex) -> None:
    """Unknown ids are ignored; the rest stays."""
    await index.upsert([make_point(f"{n}", unit(1, n)) for n in range(5)])
    await index.delete("public", ["1", "3", "nope"])
    await index.delete("other", ["0"])
    assert sorted(await found(index, unit(1))) == ["0", "2", "4"]


async def test_sweep_counts_what_it_deletes_when_some_expired(index: VectorIndex) -> None:
    """All expired points of all tenants go, once; the living stay."""
    points = [
        make_point(f"{n}", unit(1, n), tenant=f"t{n % 3}", expires_at=NOW + n) for n in range(200)
    ]
    await index.upsert(points)
    assert await index.sweep(NOW + 149) == 150
    assert await index.sweep(NOW + 149) == 0
    assert await index.count() == 50
    assert await found(index, unit(1), tenant="t0", now=NOW + 198, limit=99) == []
    assert await found(index, unit(1), tenant="t1", now=NOW + 198, limit=99) == ["199"]


async def test_search_is_exact_when_many_points_share_a_scope(index: VectorIndex) -> None:
    """The same neighbours as brute force, over 2,000 random unit vectors."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((2000, DIM)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    await index.upsert([make_point(f"{n}", row) for n, row in enumerate(rows)])
    for query in rows[:20]:
        expected = [f"{n}" for n in np.argsort(-(rows @ query))[:5]]
        assert await found(index, query) == expected


async def test_ping_answers_when_the_index_is_up(index: VectorIndex) -> None:
    """An index that is up says so by returning."""
    await index.ping()


async def test_memory_forgets_the_least_used_when_full() -> None:
    """A point that was found stays; what was not touched longest goes."""
    index = MemoryVectorIndex(DIM, max_points=100)
    await index.upsert([make_point(f"{n}", unit(1, n)) for n in range(100)])
    assert await found(index, unit(1), limit=1) == ["0"]
    await index.upsert([make_point("new", unit(0, 0, 1))])
    assert await index.count() == 100
    assert await found(index, unit(1), limit=2) == ["0", "2"]


@pytest.mark.parametrize("url", ["", "redis://x", "qdrant"])
def test_opening_refuses_when_the_url_names_no_index(url: str, tmp_path: Path) -> None:
    """The message lists what would be understood."""
    with pytest.raises(ValueError, match="memory, embedded"):
        open_vector_index(url, folder=tmp_path, collection="c", dim=DIM)


def test_names_differ_when_embedder_or_dimension_differ() -> None:
    """No two embedders share a collection, no two tenants a point."""
    names = {collection_name(f, d) for f in ("e5", "e5 ", "minilm") for d in (384, 768)}
    assert len(names) == 6
    assert len({point_id(*pair) for pair in (("a", "bc"), ("ab", "c"), ("", "abc"))}) == 3
