"""What splits the prompts of late, over HTTP: found by name and place, priced, never moved."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.prefix_admin.desk import REGELN, RULES, Desk, Json, system, user

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name} for things that {name} does. {RULES[:80]}",
            "parameters": {"type": "object", "properties": {name: {"type": "string"}}},
        },
    }
    for name in ("look", "find", "send")
]
PASSAGES = [f"Passage {name}. {RULES[at * 9 :]}" for at, name in enumerate("abcd")]


def timestamped(at: int) -> Json:
    return {"messages": [system(f"Time: 2026-11-30 10:{at:02}:07\n{RULES}"), user(f"Q{at}")]}


def zeit(at: int) -> Json:
    return {"messages": [system(f"现在是2026年11月30日10点{at}分。{REGELN}"), user(f"问题{at}")]}


def session(at: int) -> Json:
    name = f"{at}f3a2c1e-5b6d-4e7f-8a9b-0c1d2e3f4a5b"
    return {"messages": [system(f"Session id: {name}\n{RULES}"), user("Hello")]}


def tools(at: int) -> Json:
    return {"messages": [user(f"Do {at}. {RULES}")], "tools": TOOLS[at % 3 :] + TOOLS[: at % 3]}


def retrieved(at: int) -> Json:
    found = PASSAGES[at % 4 :] + PASSAGES[: at % 4]
    return {
        "messages": [system("Use the passages."), user("\n\n".join([*found, f"Question {at}?"]))]
    }


@pytest.mark.parametrize(
    ("make", "causes", "role"),
    [
        (timestamped, {"timestamp"}, "system"),
        (zeit, {"timestamp"}, "system"),
        (session, {"uuid", "identifier"}, "system"),
        (tools, {"tool_order"}, "tools"),
        (retrieved, {"retrieval_order", "line_order"}, "user"),
    ],
)
def test_span_is_named_when_it_splits_prompts(
    desk: Desk, make: Callable[[int], Json], causes: set[str], role: str
) -> None:
    """The cause, the place, what it costs and where the span should stand."""
    for at in range(1, 7):
        row = make(at)
        desk.ask(*row.pop("messages"), **row)
    seen = desk.http.get("/admin/prefix/volatile").json()
    span = next(span for span in seen["spans"] if span["role"] == role and span["cause"] in causes)
    assert span["tenant"] == "public"
    assert span["requests"] >= 2
    assert span["lost_tokens"] > 60
    assert span["mend"]
    assert 0 <= seen["hit_share"] <= seen["reachable_share"] <= 1
    if make is timestamped:
        assert (span["message"], span["field"]) == (0, "messages[0].content")
        assert 6 <= span["char"] <= len("Time: 2026-11-30 10:00")


def test_nothing_is_named_when_prompts_share_what_they_can(tiny: Any) -> None:
    """Appended turns and unrelated questions under one set of rules are as they should be."""
    desk = Desk(tiny)
    seen = desk.http.get("/admin/prefix/volatile", params={"tenant": "nobody-yet"}).json()
    assert (seen["requests"], seen["spans"]) == (0, [])
    for at in range(6):
        desk.ask(system(f"Plain rules. {RULES}"), user(f"What is item {at} about?"))
    seen = desk.http.get("/admin/prefix/volatile").json()
    assert "Plain rules" not in json.dumps(seen["spans"])


def test_query_is_refused_when_it_is_unknown(tiny: Any) -> None:
    """A misspelt parameter is an error that names it."""
    answer = Desk(tiny).http.get("/admin/prefix/volatile", params={"tenants": "x"})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "tenants"
