"""The admin API: dry-run look-ups, entries, statistics."""

import uuid
from typing import Any

import pytest

from tests.contract.client import Client, until
from tests.contract.conftest import Relay
from tests.fakes.upstream import FakeUpstream

ASKED = "How do I turn on the oven?"
REWORDED = "How do I switch on the oven?"
OPPOSITE = "How do I turn off the oven?"


def space_of(client: Client) -> str:
    return client.http.headers["x-strata-namespace"]


def imported(client: Client, *rows: dict[str, Any]) -> dict[str, Any]:
    named = [{"namespace": space_of(client), **row} for row in rows]
    response = client.http.post("/admin/cache/entries", json=named)
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_lookup_explains_itself_without_calling_a_model(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """A dry run gives outcome, numbers, reasons and candidates; it calls and counts nothing."""
    relay.seed(ASKED)
    before, num_calls = relay.metrics(), len(upstream.calls)
    exact = relay.lookup(relay.body(ASKED))
    assert exact["outcome"] == "exact"
    assert exact["entry"]
    assert "ECHO:" in str(exact["response"])
    semantic = relay.lookup(relay.body(REWORDED))
    assert semantic["outcome"] == "semantic"
    assert semantic["entry"] == exact["entry"]
    assert 0 < semantic["threshold"] <= semantic["score"] <= 1
    assert 0 < semantic["similarity"] <= 1.0001
    assert semantic["intent"]
    assert semantic["candidates"][0]["entry"] == exact["entry"]
    miss = relay.lookup(relay.body(OPPOSITE))
    assert miss["outcome"] == "miss"
    reasons = [*miss["reasons"], *(r for c in miss["candidates"] for r in c["reasons"])]
    assert {frozenset(reason) for reason in reasons} == {frozenset({"check", "verdict", "detail"})}
    assert any(reason["verdict"] == "veto" for reason in reasons)
    assert relay.lookup(relay.body(ASKED, temperature=2))["outcome"] == "bypass"
    assert len(upstream.calls) == num_calls
    counted = [line for line in before.splitlines() if line.startswith("strata_requests_total")]
    assert all(line in relay.metrics() for line in counted)


def test_imported_answers_hit_as_if_they_had_been_asked(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """A text or a whole response can be imported; both layers serve it in both modes."""
    made = relay.answer(ASKED, headers={"cache-control": "no-store"}).json()
    upstream.calls.clear()
    result = imported(
        relay,
        {"request": relay.body(ASKED), "response": made},
        {"request": relay.body("Name one metal."), "text": "Iron 铁🔩."},
    )
    assert len(result["ids"]) == 2
    hit = relay.answer(ASKED)
    assert hit.headers["x-strata-cache"] == "exact"
    assert hit.json()["choices"] == made["choices"]
    assert relay.stream(REWORDED).cache == "semantic"
    metal = relay.stream("Name one metal.")
    assert (metal.cache, metal.text) == ("exact", "Iron 铁🔩.")
    assert metal.finish_reasons[-1] == "stop"
    assert upstream.calls == []


def test_good_rows_are_kept_when_others_are_bad(relay: Relay) -> None:
    """Each bad row is named by its place; the good ones are imported all the same."""
    good = {"request": relay.body("Name one metal."), "text": "Iron."}
    bad: list[dict[str, Any]] = [
        {"text": "no request"},
        {"request": relay.body("x")},
        {"request": {"messages": []}, "text": "x"},
        {"request": relay.body("x"), "text": "x", "ttl": -5},
        {"request": relay.body("x"), "text": 3},
    ]
    result = imported(relay, *bad[:3], good, *bad[3:])
    assert len(result["ids"]) == 1 or sum(i is not None for i in result["ids"]) == 1
    assert sorted(error["index"] for error in result["errors"]) == [0, 1, 2, 4, 5]
    assert all(error["message"] for error in result["errors"])
    assert relay.answer("Name one metal.").headers["x-strata-cache"] == "exact"
    assert len(relay.entries(namespace=space_of(relay))) == 1


def test_model_may_be_any_when_an_answer_is_imported(relay: Relay) -> None:
    """Imports accept a model that nobody serves; it answers from the cache alone."""
    model = f"gone-{uuid.uuid4().hex[:8]}"
    imported(relay, {"request": relay.body(ASKED, model=model), "text": "Turn the knob."})
    assert relay.answer(ASKED, model=model).headers["x-strata-cache"] == "exact"
    assert relay.chat("Name one metal.", model=model).status_code == 404


def test_entries_are_paged_without_gaps_when_there_are_many(relay: Relay) -> None:
    """Pages follow a cursor, newest first, each entry once."""
    rows = [{"request": relay.body(f"Say item {k}."), "text": f"item {k}"} for k in range(23)]
    imported(relay, *rows)
    seen: list[str] = []
    query: dict[str, Any] = {"namespace": space_of(relay), "limit": 5}
    for _ in range(10):
        page = relay.http.get("/admin/cache/entries", params=query).json()
        seen += [entry["id"] for entry in page["entries"]]
        if not page.get("cursor"):
            break
        query["cursor"] = page["cursor"]
    assert len(seen) == len(set(seen)) == 23


def test_entries_are_filtered_when_fields_are_named(relay: Relay) -> None:
    """By namespace, model, tag and text."""
    tag = uuid.uuid4().hex
    imported(
        relay,
        {"request": relay.body("Say walnut."), "text": "walnut", "tags": [tag]},
        {"request": relay.body("Say hazel."), "text": "hazel"},
    )
    space = space_of(relay)
    assert len(relay.entries(namespace=space)) == 2
    [tagged] = relay.entries(tag=tag)
    assert "walnut" in str(tagged)
    assert len(relay.entries(namespace=space, model="stub-model")) == 2
    assert relay.entries(namespace=space, model="other") == []
    assert len(relay.entries(namespace=space, text="hazel")) == 1


@pytest.mark.parametrize("selector", ["id", "tag", "namespace"])
def test_entries_stop_hitting_when_they_are_deleted(relay: Relay, selector: str) -> None:
    """Deleted entries hit neither exactly nor by meaning; a dry run deletes nothing."""
    tag = uuid.uuid4().hex
    result = imported(
        relay, {"request": relay.body(ASKED), "text": "Turn the knob.", "tags": [tag]}
    )
    chosen = {"id": result["ids"][0], "tag": tag, "namespace": space_of(relay)}[selector]
    query = {selector: chosen}
    dry = relay.http.delete("/admin/cache/entries", params={**query, "dry_run": 1})
    done = relay.http.delete("/admin/cache/entries", params=query)
    assert dry.json()["deleted" if "deleted" in dry.json() else "count"] == 1
    assert done.json()["deleted"] == 1
    assert relay.lookup(relay.body(ASKED))["outcome"] == "miss"
    assert relay.lookup(relay.body(REWORDED))["outcome"] == "miss"
    assert relay.entries(namespace=space_of(relay)) == []


@pytest.mark.parametrize("query", [{}, {"unknown": "x"}, {"tag": ""}])
def test_nothing_is_deleted_when_no_selector_is_named(relay: Relay, query: dict[str, str]) -> None:
    """A forgotten selector must not empty the cache."""
    relay.seed(ASKED)
    assert relay.http.delete("/admin/cache/entries", params=query).status_code == 400
    assert relay.lookup(relay.body(ASKED))["outcome"] == "exact"


def test_stats_count_what_happened(relay: Relay) -> None:
    """Hit rates by layer grow with the traffic; latencies have their quantiles."""

    def stats() -> dict[str, Any]:
        return dict(relay.http.get("/admin/stats").json())

    before = stats()
    relay.seed(ASKED)
    relay.answer(ASKED)
    relay.answer(REWORDED)
    after = stats()
    for outcome in ("miss", "exact", "semantic"):
        assert after["outcomes"][outcome] == before["outcomes"].get(outcome, 0) + 1
        assert 0 < after["latency_s"][outcome]["p50"] <= after["latency_s"][outcome]["p99"]
    assert 0 < after["hit_rate"] <= 1
    assert after["by_model"]["stub-model"]["outcomes"]["exact"] >= 1


def test_prefix_stats_add_up_when_the_engine_is_idle(client: Client) -> None:
    """Blocks by state sum to the pool; nothing is held when nothing runs."""
    client.answer("Name one metal.", max_tokens=4)
    until(lambda: client.http.get("/admin/prefix/stats").json()["blocks"]["active"] == 0)
    stats = client.http.get("/admin/prefix/stats").json()
    blocks = stats["blocks"]
    assert sum(blocks[state] for state in ("free", "cached", "active")) == blocks.get(
        "total", stats.get("num_blocks")
    )
    assert blocks["cached"] > 0


def test_prefix_stats_say_so_when_there_is_no_engine(relay: Relay) -> None:
    """Without a local model the page is still an answer, not a crash."""
    assert relay.http.get("/admin/prefix/stats").status_code < 500


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000"])
def test_admin_is_refused_when_the_host_is_foreign(relay: Relay, host: str) -> None:
    """Without an admin key a page of another site cannot reach the admin API by rebinding."""
    response = relay.http.get("/admin/stats", headers={"host": host})
    assert response.status_code == 403


def test_admin_is_refused_when_another_site_posts(relay: Relay) -> None:
    """Without an admin key a browser's cross-site request is turned away."""
    response = relay.http.delete(
        "/admin/cache/entries", params={"all": 1}, headers={"origin": "https://evil.example"}
    )
    assert response.status_code == 403
