"""What must never hit, after field case F01: another tenant, or any field that matters; generated.

The fields come from the SDKs' own types, so a field that an API adds is covered when its SDK is
renewed.
"""

from itertools import islice
from typing import Any, get_type_hints

import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase as Messages
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as Chat

from semantic_layer.canonical import exact_key, scope_of
from semantic_layer.chats.conversation import Turn, split
from semantic_layer.outcome import Hit, Miss
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.stores.response_store.keys import Keys, member_name, parse_member
from tests.fakes.house import House
from tests.semantic_layer.test_key_fields import TRANSPORT_ONLY, is_neutral, values

SEED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"
SAMPLING = {"temperature", "top_p", "top_k"}
ANY = CacheControl()
APIS = {"chat": Chat, "messages": Messages}
FIELDS = [
    (api, name, hint)
    for api, params in APIS.items()
    for name, hint in get_type_hints(params, include_extras=True).items()
    if name not in TRANSPORT_ONLY | SAMPLING | {"model", "messages"}
]
NAMES = st.text(st.sampled_from("ab:{}|/%*\0\n s1"), min_size=1, max_size=6) | st.text(max_size=4)


def ask(api: str, text: str, **fields: Any) -> CacheQuery:
    request = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return CacheQuery("t", "m", "f", request, api=api)


async def stored(house: House, query: CacheQuery) -> None:
    missed = await house.cache.lookup(query, ANY)
    if isinstance(missed, Miss):
        await house.cache.store(query, ANY, missed, b"answer", answer_text="answer")


@pytest.mark.parametrize(("api", "name", "hint"), FIELDS, ids=lambda value: str(value)[:30])
async def test_rewording_misses_when_a_field_differs(api: str, name: str, hint: Any) -> None:
    """A field the seed lacks, or has with another value, is never bridged by likeness; nor exactly.

    The same field on both sides is no hindrance.
    """
    first, *others = islice((v for v in values(hint) if not is_neutral(name, v)), 8)
    house = House()
    await stored(house, ask(api, SEED, **{name: first}))
    for fields in ({}, *({name: other} for other in others)):
        for text in (SEED, REWORDED):
            assert not isinstance(await house.cache.lookup(ask(api, text, **fields), ANY), Hit)
    again = await house.cache.lookup(ask(api, SEED, **{name: first}), ANY)
    assert not isinstance(again, Hit) or again.layer == "exact"


@given(
    name=st.sampled_from([name for api, name, _ in FIELDS if api == "chat"]) | NAMES,
    one=st.recursive(
        st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "on", "1"]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
        max_leaves=4,
    ),
    other=st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "on", "1"]),
)
@example(name="n", one=1, other=True)
@example(name="seed", one=0, other=None)
@example(name="max_tokens", one=[], other=None)
@example(name="n", one=2, other=1)
@example(name="tools", one=[1], other=[])
@example(name="\0sampling", one="greedy", other=None)
@example(name="\0sampling", one="sampled", other=None)
def test_scope_differs_when_any_field_does(name: str, one: Any, other: Any) -> None:
    """Known and unknown fields, of any shape: keys and scopes part at the same places."""
    if name in TRANSPORT_ONLY | SAMPLING | {"model", "messages"}:
        return
    queries = [ask("chat", SEED, **{name: value}) for value in (one, other)]
    if exact_key(queries[0]) != exact_key(queries[1]):
        assert scope(queries[0]) != scope(queries[1])


def scope(query: CacheQuery) -> str:
    turn = split(query, ANY)
    assert isinstance(turn, Turn)
    return scope_of(query, turn)


@pytest.mark.parametrize(
    ("seeded", "asked", "hits"),
    [
        ({"temperature": 0}, {"temperature": 0.7}, False),
        ({"temperature": 0.7}, {"temperature": 0}, False),
        ({"temperature": 0.7, "seed": 1}, {"temperature": 0.8, "seed": 1}, False),
        ({"temperature": 0.7}, {"temperature": 0.8, "top_p": 0.9}, True),
        ({"temperature": 0}, {"temperature": 0, "top_p": 0.9}, True),
    ],
)
async def test_sampling_is_bridged_within_its_class_only(
    seeded: dict[str, Any], asked: dict[str, Any], hits: bool
) -> None:
    """Greedy and sampled never meet; with a seed every option counts."""
    house = House()
    await stored(house, ask("chat", SEED, **seeded))
    outcome = await house.cache.lookup(ask("chat", REWORDED, **asked), ANY)
    assert isinstance(outcome, Hit) == hits


@given(whole=st.text(st.sampled_from("ab:{}|/%\0 1s"), min_size=6, max_size=12), data=st.data())
@example(whole="a:b:c:d", data=None)
async def test_tenants_never_meet_when_names_and_texts_run_together(
    whole: str, data: st.DataObject | None
) -> None:
    """One string cut into tenant, namespace and text at other places is another request."""
    cuts = st.lists(st.integers(1, len(whole) - 1), min_size=2, max_size=2, unique=True)
    places = [(2, 4), (1, 3)] if data is None else [sorted(data.draw(cuts)) for _ in range(2)]
    house = House()
    asked = [
        CacheQuery(
            whole[:a], "m", "f",
            {"messages": [{"role": "user", "content": whole[b:] + SEED}]}, namespace=whole[a:b],
        )
        for a, b in places
    ]  # fmt: skip
    await stored(house, asked[0])
    if (asked[0].tenant, asked[0].namespace) != (asked[1].tenant, asked[1].namespace):
        assert not isinstance(await house.cache.lookup(asked[1], ANY), Hit)


@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=2, unique=True))
@example([("a", "b:r:c"), ("a:r:b", "c")])
@example([("a}:e", "b"), ("a", "}:eb")])
def test_names_in_redis_never_meet_when_tenants_are_crafted(names: list[tuple[str, str]]) -> None:
    """No tenant's record, entry or index has another's key, and a member tells whose it is."""
    keys = Keys("strata")
    (one, first), (other, second) = names
    assert keys.record(one, first) != keys.record(other, second)
    if one != other:
        kinds = (
            lambda tenant: keys.entry(tenant, "id"),
            keys.tenant,
            lambda tenant: keys.count(tenant, "requests", 1),
        )
        assert {kind(one) for kind in kinds}.isdisjoint(kind(other) for kind in kinds)
    assert parse_member(member_name(one, "id")) == (one, "id")
