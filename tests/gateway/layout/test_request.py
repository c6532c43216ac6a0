"""What the gateway writes into a request and what it orders: the same sets, keyed as seen."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.laid_out import lay_out
from gateway.layout import canonical_json
from gateway.setting_sections import LayoutSettings
from gateway.settings import Settings
from gateway.wire.openai import check_chat
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import QUIET, MemoryGateway

CANONICAL = LayoutSettings(tools="sorted", documents="by_id")
AS_SENT = LayoutSettings()
ROUTE = "/v1/chat/completions"
DOCUMENTS = [{"id": "b", "text": "Bern is a city."}, {"id": "a", "text": "Aare is a river."}]
NAMES = st.text("abcXYZ019_-", min_size=1, max_size=5)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(NAMES, st.fixed_dictionaries({"type": st.just("string")})),
        "required": st.lists(NAMES, unique=True, max_size=3),
        "additionalProperties": st.booleans(),
    },
)
TOOLS = st.lists(
    st.builds(
        lambda name, schema: {"type": "function", "function": {"parameters": schema, "name": name}},
        NAMES,
        SCHEMAS,
    ),
    max_size=5,
    unique_by=lambda tool: tool["function"]["name"],
)
DOCUMENT_LISTS = st.lists(
    st.fixed_dictionaries({"id": NAMES, "text": st.text(min_size=1, max_size=12)}),
    max_size=5,
    unique_by=lambda document: document["id"],
)
CONTENTS = st.text(min_size=1, max_size=9) | st.just([{"type": "text", "text": "part"}])


def chat(*contents: Any, **fields: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": content} for at, content in enumerate(contents)]
    return {"model": "m", "messages": messages, **fields}


def laid_out(body: dict[str, Any], layout: LayoutSettings) -> tuple[dict[str, Any], Any]:
    checked = check_chat(body)
    return lay_out(checked.body, checked.request.strata, layout)


def sets(tools: list[dict[str, Any]]) -> list[str]:
    """Write tools so that no order matters: of tools, of keys, of required names."""
    plain = json.loads(json.dumps(tools))
    for tool in plain:
        if "required" in tool["function"]["parameters"]:
            tool["function"]["parameters"]["required"].sort()
    return sorted(map(canonical_json, plain))


@given(TOOLS, DOCUMENT_LISTS, st.lists(CONTENTS, min_size=1, max_size=4), st.booleans())
def test_nothing_changes_its_meaning_when_a_request_is_put_in_order(
    tools: Any, documents: Any, contents: list[Any], is_canonical: bool
) -> None:
    """Tools, schemas and documents are the same sets, and every other field is untouched."""
    strata = {"documents": documents, "tags": ["t"]}
    body = chat(*contents, tools=tools, temperature=0.5, strata=strata)
    before = json.dumps(body)
    told, field = laid_out(body, CANONICAL if is_canonical else AS_SENT)
    assert json.dumps(body) == before
    assert sets(told["tools"]) == sets(tools)
    assert {k: v for k, v in told.items() if k not in ("tools", "messages")} == {
        "model": "m",
        "temperature": 0.5,
    }
    at = max(at for at, message in enumerate(told["messages"]) if message["role"] == "user")
    for place, message in enumerate(told["messages"]):
        if place != at or not documents:
            assert message == body["messages"][place]
    if documents:
        content = told["messages"][at]["content"]
        text = content if isinstance(content, str) else "".join(part["text"] for part in content)
        for document in documents:
            block = f'<document id="{document["id"]}">\n{document["text"]}\n</document>\n'
            assert block in text
            text = text.replace(block, "", 1)
        sent = contents[at]
        sent = sent if isinstance(sent, str) else "part"
        assert text == f"<documents>\n</documents>\n\n{sent}"
        assert len(field.context) == len(documents)
        assert field.documents is None
        assert field.tags == ["t"]


@given(st.permutations(DOCUMENTS), TOOLS, st.data())
def test_requests_become_one_when_only_their_order_differs(
    documents: Any, tools: Any, data: st.DataObject
) -> None:
    """Under the settings the model sees the same bytes whatever the order was."""
    other = data.draw(st.permutations(tools))
    first, field = laid_out(chat("Q", tools=tools, strata={"documents": DOCUMENTS}), CANONICAL)
    second, again = laid_out(chat("Q", tools=other, strata={"documents": documents}), CANONICAL)
    assert json.dumps(first) == json.dumps(second)
    assert set(field.context) == set(again.context)


def test_wishes_of_the_request_stand_when_documents_are_given() -> None:
    """A named query and a named context are not replaced."""
    strata = {"documents": DOCUMENTS, "query": "river?", "context": ["v7"]}
    _, field = laid_out(chat("Which river?", strata=strata), AS_SENT)
    assert (field.query, field.context) == ("river?", ["v7"])
    _, field = laid_out(chat("Which river?", strata={"documents": DOCUMENTS}), AS_SENT)
    assert field.query == "Which river?"
    _, changed = laid_out(
        chat("Which river?", strata={"documents": [{"id": "a", "text": "new"}, DOCUMENTS[0]]}),
        AS_SENT,
    )
    assert set(field.context) != set(changed.context)


@pytest.mark.parametrize(
    ("strata", "param"),
    [
        ({"documents": [{"id": "a"}]}, "strata.documents[0].text"),
        ({"documents": [{"id": "", "text": "x"}]}, "strata.documents[0].id"),
        ({"documents": [{"id": "a", "text": ""}]}, "strata.documents[0].text"),
        ({"documents": [DOCUMENTS[0], DOCUMENTS[0]]}, "strata.documents[1].id"),
        ({"documents": {"a": "x"}}, "strata.documents"),
        ({"documents": [{"id": "a", "text": "x", "rank": 1}]}, "strata.documents[0].rank"),
    ],
)
async def test_request_is_refused_when_a_document_is_wrong(
    strata: dict[str, Any], param: str
) -> None:
    """One error names the field, and no model is asked."""
    backend = FakeBackend(whole("ok"))
    async with MemoryGateway(backend).client() as client:
        answer = await client.post(ROUTE, json=chat("Q", strata=strata))
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].replace("[...]", "[0]") == param
    assert backend.calls == []


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/completions", {"model": "m", "prompt": "Once"}),
        ("/v1/embeddings", {"model": "m", "input": "Once"}),
    ],
)
async def test_documents_are_refused_when_there_is_no_chat(
    route: str, body: dict[str, Any]
) -> None:
    """A prompt without turns has no place for documents."""
    async with MemoryGateway(FakeBackend(whole("ok"))).client() as client:
        answer = await client.post(route, json={**body, "strata": {"documents": DOCUMENTS}})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "strata.documents"


def test_documents_are_refused_when_no_user_speaks() -> None:
    """They stand before a question, so there must be one."""
    body = {"model": "m", "messages": [{"role": "system", "content": "x"}]}
    with pytest.raises(BadRequest, match="user message"):
        laid_out({**body, "strata": {"documents": DOCUMENTS}}, AS_SENT)


@pytest.mark.parametrize("layout", [AS_SENT, CANONICAL])
async def test_key_follows_what_the_model_sees_when_documents_change_places(
    layout: LayoutSettings,
) -> None:
    """Another order is another request, unless the settings make one of them; dry run included."""
    backend = FakeBackend(whole("ok"))
    settings = Settings(log=QUIET.log, layout=layout)
    tools = [{"type": "function", "function": {"name": name}} for name in ("zoo", "ask")]
    first = chat("Which river?", tools=tools, strata={"documents": DOCUMENTS})
    other = chat("Which river?", tools=tools[::-1], strata={"documents": DOCUMENTS[::-1]})
    async with MemoryGateway(backend, settings).client() as client:
        assert (await client.post(ROUTE, json=first)).status_code == 200
        dry = (await client.post("/admin/cache/lookup", json={"request": other})).json()
        again = await client.post(ROUTE, json=other)
        same = await client.post(ROUTE, json=first)
    expected = "exact" if layout is CANONICAL else "miss"
    assert dry["outcome"] == again.headers["x-strata-cache"] == expected
    assert same.headers["x-strata-cache"] == "exact"
    assert "strata" not in backend.calls[0].body
    content = backend.calls[0].body["messages"][0]["content"]
    assert content.endswith("</documents>\n\nWhich river?")
    ids = [content.index(f'id="{document["id"]}"') for document in DOCUMENTS]
    assert (ids[0] > ids[1]) == (layout is CANONICAL)


async def test_other_apis_carry_documents_when_they_are_chats() -> None:
    """Anthropic's and the Responses API give the model the same text as a chat does."""
    backend = FakeBackend(whole("ok"))
    strata = {"documents": DOCUMENTS}
    message = {"messages": [{"role": "user", "content": "Q"}], "max_tokens": 9, "strata": strata}
    async with MemoryGateway(backend).client() as client:
        first = await client.post("/v1/messages", json={"model": "m", **message})
        second = await client.post(
            "/v1/responses", json={"model": "m", "input": "Q", "strata": strata}
        )
    assert (first.status_code, second.status_code) == (200, 200), second.text
    for call in backend.calls:
        assert json.dumps(call.body["messages"]).count("Aare is a river.") == 1
