"""The exact key and the scope: what makes requests equal, and what never does."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semantic_layer.canonical import TRANSPORT_ONLY, _digest, _fields, encode, exact_key, scope_of
from semantic_layer.chats.conversation import Turn, split
from semantic_layer.request import CacheControl, CacheQuery
from tests.semantic_layer.test_key_fields import is_neutral

NAMES = st.text(min_size=1, max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
SET_ELSEWHERE = TRANSPORT_ONLY | {"model", "messages", "text", "tenant"}  # by `ask` itself
FIELDS = st.dictionaries(NAMES.filter(lambda name: name not in SET_ELSEWHERE), JSON, max_size=4)


def ask(text: Any = "Hi", *, tenant: str = "t", **fields: Any) -> CacheQuery:
    request = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return CacheQuery(tenant, "m", "f", request)


def scope(query: CacheQuery, control: CacheControl | None = None) -> str:
    turn = split(query, control or CacheControl())
    assert isinstance(turn, Turn)
    return scope_of(query, turn)


@given(JSON, JSON)
@example(False, 0)
@example(1, 1.0)
@example("1", 1)
@example(["ps:q", "r"], ["p", "qs:r"])
@example([["a"], "b"], [["a", "b"]])
def test_encoding_differs_when_values_differ(one: Any, other: Any) -> None:
    """Two JSON values have the same bytes only when they are equal as JSON."""
    assert (encode(one) == encode(other)) == (plain(one) == plain(other))


def plain(value: Any) -> Any:
    """JSON as a hashable value in which true is not 1 and 1.0 is 1."""
    if isinstance(value, dict):
        return ("map", frozenset((name, plain(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(plain(item) for item in value))
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    return ("number", value)


@given(FIELDS, NAMES, JSON)
@example({}, "n", 1)
@example({}, "n", True)
@example({"n": 1.0}, "n", 2)
@example({}, "echo", 0)
def test_key_changes_when_any_field_changes(fields: dict[str, Any], name: str, value: Any) -> None:
    """Every field that is not transport-only is part of the key, also unknown ones."""
    if name in SET_ELSEWHERE:
        return
    before, after = ask(**fields), ask(**{**fields, name: value})
    if plain(said(before.request)) != plain(said(after.request)):
        assert exact_key(before) != exact_key(after)
    else:
        assert exact_key(before) == exact_key(after)


def said(request: dict[str, Any]) -> Any:
    fields = without_nulls(request)
    return {name: value for name, value in fields.items() if not is_neutral(name, value)}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {n: without_nulls(v) for n, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


@given(FIELDS, NAMES, NAMES)
def test_key_and_scope_differ_when_tenants_differ(
    fields: dict[str, Any], one: str, other: str
) -> None:
    """Two tenants never share a key or a scope, whatever their names and requests."""
    ours, theirs = ask(tenant=one, **fields), ask(tenant=other, **fields)
    assert (exact_key(ours) == exact_key(theirs)) == (one == other)
    assert (scope(ours) == scope(theirs)) == (one == other)


@pytest.mark.parametrize("name", sorted(TRANSPORT_ONLY))
def test_key_stays_when_a_transport_field_changes(name: str) -> None:
    """What only says how the answer travels stays out of the key and the scope."""
    assert exact_key(ask()) == exact_key(ask(**{name: "x"}))
    assert scope(ask()) == scope(ask(**{name: "x"}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ask(temperature=1), ask(temperature=1.0)),
        (ask(stop=None), ask()),
        (ask(max_tokens=9), ask(max_completion_tokens=9)),
        (ask("Hello"), ask([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}])),
        (ask(a={"x": 1, "y": 2}), ask(a={"y": 2, "x": 1})),
    ],
)
def test_key_is_equal_when_only_the_spelling_differs(one: CacheQuery, other: CacheQuery) -> None:
    """Equal numbers, nulls, key order, both token limits and text parts make no difference."""
    assert exact_key(one) == exact_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ask(logprobs=True), ask(logprobs=1)),
        (ask(n="1"), ask(n=1)),
        (ask(stop=["ab"]), ask(stop=["a", "b"])),
        (ask(max_tokens=9), ask(max_tokens=10)),
        (ask("Hi"), ask("Hi ")),
        (ask("Hi"), ask([{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}])),
        (
            ask(tools=[{"function": {"parameters": {"default": None}}}]),
            ask(tools=[{"function": {"parameters": {}}}]),
        ),
    ],
)
def test_key_differs_when_meaning_may_differ(one: CacheQuery, other: CacheQuery) -> None:
    """Types, borders of lists, limits, white space and nulls inside schemas all count."""
    assert exact_key(one) != exact_key(other)


@pytest.mark.parametrize("field", ["namespace", "model", "model_fingerprint", "api"])
def test_key_differs_when_the_space_differs(field: str) -> None:
    """Namespace, model, its fingerprint and the API are part of key and scope."""
    other = replace(ask(), **{field: "messages"})
    assert exact_key(ask()) != exact_key(other)
    assert scope(ask()) != scope(other)


def test_context_is_a_set_when_documents_are_named() -> None:
    """The documents an answer rests on must be the same, in whatever order."""
    assert exact_key(ask(), ["a", "b"]) == exact_key(ask(), ("b", "a", "a"))
    assert exact_key(ask(), ["a"]) != exact_key(ask(), ["a", "b"])
    assert exact_key(ask(), ["a"]) != exact_key(ask())


def test_scope_stays_when_the_last_text_or_seedless_sampling_changes() -> None:
    """Only the last user text and sampling options of one class vary inside a scope."""
    assert scope(ask("a", temperature=0.2)) == scope(ask("b", temperature=0.9, top_p=0.5))
    assert scope(ask(temperature=0)) == scope(ask(temperature=0.0, top_p=0.1))


@pytest.mark.parametrize(
    "other",
    [
        ask(temperature=0),
        ask(seed=1),
        ask(max_tokens=5),
        ask(tools=[{"type": "function"}]),
        ask(presence_penalty=1),
        replace(
            ask(),
            request={
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": "Hi"},
                ]
            },
        ),
    ],
)
def test_scope_differs_when_anything_else_differs(other: CacheQuery) -> None:
    """Greedy against sampled, seeds, limits, tools and system prompt stay exact."""
    assert scope(ask()) != scope(other)


def test_pages_do_not_matter_when_query_and_documents_are_named() -> None:
    """Named documents stand for the pages that the message carries."""
    control = CacheControl(query_text="What is it?", context=("d1",))
    assert scope(ask("page one"), control) == scope(ask("page two"), control)


def test_pages_stay_in_the_scope_when_only_the_query_is_named() -> None:
    """Without named documents the rest of the message must be equal; the query may vary."""
    first, second = (CacheControl(query_text=text) for text in ("What is it?", "So what is it?"))
    assert scope(ask("page. What is it?"), first) == scope(ask("page. So what is it?"), second)
    assert scope(ask("page. What is it?"), first) != scope(ask("leaf. What is it?"), first)


def test_named_query_never_meets_a_whole_message() -> None:
    """A plain question is not answered from pages that it did not bring."""
    for control in (CacheControl(query_text="Hi"), CacheControl(query_text="Hi", context=())):
        assert scope(ask("Hi"), control) != scope(ask("Hi"), CacheControl())


def test_scope_keeps_images_when_a_query_text_is_given() -> None:
    """A picture is not text: it stays part of the scope."""
    control = CacheControl(query_text="What is it?")

    def picture(url: str) -> CacheQuery:
        image = {"type": "image_url", "image_url": {"url": url}}
        return ask([{"type": "text", "text": "see"}, image])

    assert scope(picture("a"), control) != scope(picture("b"), control)
    assert isinstance(split(picture("a"), CacheControl()), str)


@pytest.mark.parametrize(
    "messages",
    [[], None, [{"role": "assistant", "content": "x"}], [{"role": "user", "content": " "}], ["x"]],
)
def test_nothing_varies_when_there_is_no_last_user_text(messages: Any) -> None:
    """Without a last user text a request is for exact repeats only, with a reason."""
    assert isinstance(split(CacheQuery("t", "m", "f", {"messages": messages}), CacheControl()), str)


@given(FIELDS, st.sampled_from(["Hi", "Hi" * 5000]))
@example({"seed": 2**80}, "Hi")
@example({"note": "\ud800"}, "Hi")
@example({"scale": 1.0, "other": [1, True, None]}, "Hi")
def test_key_is_what_it_is_when_it_is_remembered(fields: dict[str, Any], text: str) -> None:
    """A key that was worked out before, or that cannot be remembered, is the same key."""
    query = ask(text, **fields)
    plain = _digest("exact", query, ("b", "a"), _fields(query.request))
    assert [exact_key(query, ("a", "b", "a")) for _ in range(2)] == [plain, plain]
