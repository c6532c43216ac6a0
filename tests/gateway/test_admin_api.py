"""The admin routes over a real cache in memory."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.settings import Settings
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway

ENTRIES = "/admin/cache/entries"
LOOKUP = "/admin/cache/lookup"
CHAT = "/v1/chat/completions"


def ask(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **fields}


@pytest.fixture
def gateway() -> MemoryGateway:
    return MemoryGateway(FakeBackend(whole("made")))


@pytest.fixture
async def client(gateway: MemoryGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with gateway.client() as client:
        yield client


async def imported(client: httpx.AsyncClient, *rows: dict[str, Any]) -> Any:
    response = await client.post(ENTRIES, json=list(rows))
    assert response.status_code == 200, response.text
    return response.json()


async def test_imported_answer_is_served_when_its_request_comes(client: httpx.AsyncClient) -> None:
    """What was imported is an exact hit, streamed and whole, for any model name."""
    request = ask("Where is the key?", model="a-model-nobody-serves")
    result = await imported(client, {"request": request, "text": "Under the mat."})
    assert result["imported"] == 1
    answer = await client.post(CHAT, json=request)
    assert answer.headers["x-strata-cache"] == "exact"
    assert answer.headers["x-strata-entry"] == result["ids"][0]
    assert answer.json()["choices"][0]["message"]["content"] == "Under the mat."


async def test_whole_response_is_kept_when_it_is_imported(client: httpx.AsyncClient) -> None:
    """Tool calls, finish_reason and usage come back as they were given."""
    call = {"id": "k", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 3,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }
    await imported(client, {"request": ask(), "response": response})
    served = (await client.post(CHAT, json=ask())).json()
    assert served["choices"][0]["message"]["tool_calls"] == [call]
    assert served["choices"][0]["finish_reason"] == "tool_calls"
    assert served["usage"] == response["usage"]


async def test_bad_rows_are_named_when_good_ones_are_kept(client: httpx.AsyncClient) -> None:
    """An import is not all or nothing."""
    refused = {"choices": [{"message": {"refusal": "no"}, "finish_reason": "error"}]}
    filtered = {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}
    rows = [
        {"request": ask("one"), "text": "1"},
        {"request": ask("two", temperature=5), "text": "2"},
        {"request": ask("three")},
        {"request": ask("four"), "text": "4", "response": {}},
        {"request": ask("five"), "response": refused},
        {"request": ask("six"), "response": filtered},
        {"request": ask("seven"), "response": {"choices": []}},
        {"request": ask("eight"), "text": "8", "tll": 5},
        {"request": ask("nine", temperature=1.5), "text": "9"},
        "ten",
        {"request": ask("eleven"), "text": "11"},
    ]
    result = await imported(client, *rows)
    assert result["imported"] == len(result["ids"]) == 2
    assert {error["index"]: error["param"] for error in result["errors"]} == {
        1: "request.temperature",
        2: "response",
        3: "response",
        4: "response",
        5: "response",
        6: "response.choices",
        7: "tll",
        8: "request",
        9: None,
    }
    assert all(error["message"] for error in result["errors"])


def choice(index: int = 0, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "x"}
    return {"index": index, "message": message, "finish_reason": "stop", **fields}


TOKEN = {"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}
CALLED = {"content": None, "tool_calls": [{"id": "k", "type": "function"}]}


@pytest.mark.parametrize(
    ("fields", "answer", "param"),
    [
        ({"n": 2}, {"text": "x"}, "text"),
        ({"n": 2}, {"response": {"choices": [choice()]}}, "response.choices"),
        ({"n": 2}, {"response": {"choices": [choice(), choice()]}}, "response.choices"),
        ({}, {"response": {"choices": [choice(), choice(1)]}}, "response.choices"),
        ({"logprobs": True}, {"text": "x"}, "text"),
        (
            {"logprobs": True, "n": 2},
            {"response": {"choices": [choice(logprobs={"content": [TOKEN]}), choice(1)]}},
            "response.choices",
        ),
        ({}, {"text": ""}, "text"),
        ({"n": 129}, {"text": "x"}, "request.n"),
    ],
)
async def test_row_is_named_when_its_answer_has_another_shape(
    client: httpx.AsyncClient, fields: dict[str, Any], answer: dict[str, Any], param: str
) -> None:
    """Nothing is stored that its request would be answered wrongly with."""
    good = {"request": ask("good"), "text": "x"}
    result = await imported(client, {"request": ask(**fields), **answer}, good)
    assert [(error["index"], error["param"]) for error in result["errors"]] == [(0, param)]
    assert result["errors"][0]["message"]
    assert result["imported"] == 1


async def test_row_is_kept_when_its_answer_has_the_shape_asked_for(
    client: httpx.AsyncClient,
) -> None:
    """Choices in any order, with logprobs where there is text."""
    logprobs = {"content": [TOKEN]}
    choices = [choice(1, message=CALLED, finish_reason="tool_calls"), choice(0, logprobs=logprobs)]
    row = {"request": ask(n=2, logprobs=True), "response": {"choices": choices}}
    assert (await imported(client, row))["errors"] == []


@pytest.mark.parametrize("body", [b"{}", b"", b"[", b'"x"'])
async def test_import_is_refused_when_it_is_no_list(client: httpx.AsyncClient, body: bytes) -> None:
    """A malformed body is a 400."""
    headers = {"content-type": "application/json"}
    response = await client.post(ENTRIES, content=body, headers=headers)
    assert response.status_code == 400


async def test_lookup_tells_the_outcome_without_counting(
    client: httpx.AsyncClient, gateway: MemoryGateway
) -> None:
    """A dry run calls no model, stores nothing and moves no counter."""
    miss = (await client.post(LOOKUP, json={"request": ask()})).json()
    assert miss["outcome"] == "miss"
    assert miss["entry"] is None
    assert "response" not in miss
    assert {"score", "similarity", "threshold", "intent", "reasons", "candidates"} <= set(miss)
    ids = (await imported(client, {"request": ask(), "text": "Hello"}))["ids"]
    hit = (await client.post(LOOKUP, json={"request": ask(stream=True)})).json()
    assert (hit["outcome"], hit["entry"]) == ("exact", ids[0])
    assert hit["response"]["choices"][0]["message"]["content"] == "Hello"
    headers = {"Cache-Control": "no-cache, no-store"}
    bypass = (await client.post(LOOKUP, json={"request": ask(), "headers": headers})).json()
    assert bypass["outcome"] == "bypass"
    assert bypass["reasons"][0]["check"]
    assert gateway.records == []
    assert gateway.parts.stats.snapshot()["requests"] == 0


async def test_tenants_and_namespaces_are_apart_when_looked_up(client: httpx.AsyncClient) -> None:
    """An entry is found only as its tenant, in its namespace."""
    row = {"request": ask(), "text": "x", "tenant": "acme", "namespace": "blue"}
    await imported(client, row)

    async def outcome(tenant: str | None, namespace: str | None) -> str:
        headers = {"x-strata-namespace": namespace} if namespace else {}
        body = {"request": ask(), "headers": headers, **({"tenant": tenant} if tenant else {})}
        return str((await client.post(LOOKUP, json=body)).json()["outcome"])

    assert await outcome("acme", "blue") == "exact"
    assert await outcome("acme", None) == "miss"
    assert await outcome(None, "blue") == "miss"
    assert (await client.post(CHAT, json=ask())).headers["x-strata-cache"] == "miss"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"request": ask(temperature=9)}, "request.temperature"),
        ({"request": {"model": "m"}}, "request.messages"),
        ({"request": ask(), "headers": {"X-Strata-TTL": "x"}}, "x-strata-ttl"),
        ({"reqest": ask()}, "reqest"),
        ({}, "request"),
    ],
)
async def test_lookup_names_the_field_when_it_is_wrong(
    client: httpx.AsyncClient, body: Any, param: str
) -> None:
    """Admin errors are as clear as the model API's."""
    response = await client.post(LOOKUP, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


async def test_entries_are_filtered_and_paged_when_browsed(client: httpx.AsyncClient) -> None:
    """Every filter selects, pages give each entry once, and a row can be imported again."""
    rows = [
        {"request": ask(f"question {n}"), "text": f"answer {n}", "tags": [f"t{n % 2}"]}
        for n in range(7)
    ]
    rows.append({"request": ask("q", model="other"), "text": "z", "namespace": "blue", "ttl": 50})
    ids = (await imported(client, *rows))["ids"]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        params = {"limit": "3", **({"cursor": cursor} if cursor else {})}
        page = (await client.get(ENTRIES, params=params)).json()
        seen += [entry["id"] for entry in page["entries"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(ids)

    async def found(**params: str) -> int:
        return len((await client.get(ENTRIES, params=params)).json()["entries"])

    assert await found(tag="t1") == 3
    assert await found(model="other") == 1
    assert await found(namespace="blue") == 1
    assert await found(namespace="") == 7
    assert await found(text="question 3") == 1
    assert await found(tenant="nobody") == 0
    assert await found(id=ids[2]) == 1
    entry = (await client.get(ENTRIES, params={"model": "other"})).json()["entries"][0]
    assert entry["expires_at"] - entry["created_at"] == pytest.approx(50)
    again = {"request": entry["request"], "response": entry["response"], "namespace": "blue"}
    assert await imported(client, again) == {"imported": 1, "ids": [entry["id"]], "errors": []}


@pytest.mark.parametrize(
    ("method", "query", "param"),
    [
        ("GET", "limit=0", "limit"),
        ("GET", "limit=x", "limit"),
        ("GET", "cursor=nonsense", "cursor"),
        ("GET", "tags=a", "tags"),
        ("DELETE", "", "all"),
        ("DELETE", "dry_run=1", "all"),
        ("DELETE", "all=0", "all"),
        ("DELETE", "tags=a&model=m", "tags"),
        ("DELETE", "tag=", "tag"),
        ("DELETE", "namespace=", "namespace"),
        ("DELETE", "tag=a&dry_run=ja", "dry_run"),
        ("DELETE", "tag=a&dry_run=", "dry_run"),
        ("DELETE", "tag=a&dry_run=%20", "dry_run"),
        ("DELETE", "all=2", "all"),
        ("DELETE", "tag=a&all=y", "all"),
        ("DELETE", "all=yes", "all"),
        ("DELETE", "all=on&dry_run=0", "all"),
        ("DELETE", "all=1&dry_run=yes", "dry_run"),
        ("DELETE", "tag=a&tag=b", "tag"),
    ],
)
async def test_query_is_refused_when_it_could_mean_too_much(
    client: httpx.AsyncClient, method: str, query: str, param: str
) -> None:
    """A typo never deletes more than was meant."""
    await imported(client, {"request": ask(), "text": "x", "tags": ["a"]})
    response = await client.request(method, f"{ENTRIES}?{query}")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
    assert len((await client.get(ENTRIES)).json()["entries"]) == 1


async def test_entries_go_when_they_are_selected(client: httpx.AsyncClient) -> None:
    """A dry run only counts; each selector removes its own; a removed entry is a miss."""
    rows = [{"request": ask(f"q{n}"), "text": "x", "tags": [f"t{n % 2}"]} for n in range(5)]
    ids = (await imported(client, *rows))["ids"]

    async def removed(query: str) -> Any:
        response = await client.delete(f"{ENTRIES}?{query}")
        assert response.status_code == 200, response.text
        return response.json()

    for yes in ("1", "true", "True"):
        assert await removed(f"tag=t0&dry_run={yes}") == {"deleted": 3, "dry_run": True}
    assert await removed("tag=none&dry_run=False&all=0") == {"deleted": 0, "dry_run": False}
    assert await removed(f"id={ids[0]}") == {"deleted": 1, "dry_run": False}
    assert await removed("tag=t0") == {"deleted": 2, "dry_run": False}
    assert (await removed("tenant=nobody"))["deleted"] == 0
    assert (await removed("all=1"))["deleted"] == 2
    assert (await client.post(CHAT, json=ask("q1"))).headers["x-strata-cache"] == "miss"


async def test_stats_sum_up_when_traffic_has_passed(client: httpx.AsyncClient) -> None:
    """Hits, latencies, savings, entries and parts are shown."""
    for _ in range(3):
        await client.post(CHAT, json=ask())
    stats = (await client.get("/admin/stats")).json()
    assert stats["requests"] == sum(stats["outcomes"].values()) == 3
    assert stats["hit_rate"] == pytest.approx(2 / 3)
    assert stats["by_model"]["m"]["requests"] == 3
    assert stats["latency_s"]["exact"]["p50"] <= stats["latency_s"]["exact"]["p99"]
    assert stats["ttft_s"]["miss"]["count"] == 1
    assert stats["tokens_saved"]["exact"] == 2 * (7 + len("made"))
    assert stats["entries"]["redis"] == 1
    assert stats["parts"]["redis"]["ok"]
    assert stats["thresholds"]["factual"] == 0.95
    prefix = (await client.get("/admin/prefix/stats")).json()
    assert prefix["engine"]["state"] == "off"
    assert prefix["ttft_s"]["miss"]["count"] == 1


@pytest.mark.parametrize("route", [ENTRIES, "/admin/stats", "/admin/prefix/stats"])
async def test_admin_is_closed_when_the_caller_is_elsewhere(
    gateway: MemoryGateway, route: str
) -> None:
    """Without an admin key only this machine enters; with one, whoever has it."""
    async with gateway.client(peer="10.0.0.9") as client:
        response = await client.get(route)
        assert response.status_code == 403
        assert response.json()["error"]["type"] == "invalid_request_error"
    keyed = MemoryGateway(FakeBackend([]), Settings(admin_key="a-secret", log=QUIET.log))
    async with keyed.client(peer="10.0.0.9") as client:
        response = await client.get(route)
        assert response.status_code == 401
        assert "www-authenticate" in response.headers
        assert (await client.get(route, headers={"x-strata-admin-key": "a-secret"})).is_success


async def test_admin_is_closed_when_a_foreign_page_posts(client: httpx.AsyncClient) -> None:
    """A browser on this machine is not a way in for other sites."""
    response = await client.delete(f"{ENTRIES}?all=1", headers={"origin": "https://evil.example"})
    assert response.status_code == 403
    response = await client.post(ENTRIES, content=b"[]", headers={"content-type": "text/plain"})
    assert response.status_code == 400
