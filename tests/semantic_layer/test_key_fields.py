"""Every field of OpenAI's requests that can change the answer is in the key; generated.

The fields come from the SDK's own types, so a field that OpenAI adds is covered when the SDK is
renewed.
"""

import json
import os
import types
from collections.abc import Iterator
from itertools import islice
from typing import (
    IO,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as Chat
from openai.types.completion_create_params import CompletionCreateParamsBase as Text
from openai.types.embedding_create_params import EmbeddingCreateParams as Embeddings

from gateway.wire.embeddings import decode_embeddings
from semantic_layer import CacheQuery
from semantic_layer.canonical import exact_key

TRANSPORT_ONLY = {
    "stream",
    "stream_options",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "metadata",
    "store",
    "service_tier",
}
BASES: dict[str, dict[str, Any]] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": "base"}]},
    "completions": {"model": "m", "prompt": "base"},
    "embeddings": {"model": "m", "input": "base"},
}
PARAMS = {"chat": Chat, "completions": Text, "embeddings": Embeddings}
NEUTRAL = {  # what the API takes for granted where a request of these bases says nothing
    "n": 1,
    "best_of": 1,
    "echo": False,
    "logprobs": False,
    "logit_bias": {},
    "stop": [],
    "response_format": {"type": "text"},
    "tools": [],
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": True,
}
NOT_JSON = {bytes, IO, os.PathLike}  # files, which the SDK reads before it sends them
DEPTH = 6
WIDTH = 600  # values tried of one field


def values(hint: Any, depth: int = DEPTH) -> Iterator[Any]:  # noqa: C901 - one case a kind
    """Give values of a type that mean different things."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Required, NotRequired, Annotated):
        yield from values(args[0], depth)
    elif origin is Literal:
        yield from args
    elif origin in (Union, types.UnionType):
        for arg in args:
            if arg is not type(None):
                yield from values(arg, depth)
    elif hasattr(hint, "__required_keys__"):
        yield from structs(hint, depth)
    elif hint in (bool, int, float, str):
        yield from {bool: (True, False), int: (1, 2), float: (0.25, 0.5), str: ("a", "b")}[hint]
    elif {hint, origin} & NOT_JSON or hasattr(hint, "model_fields"):
        return
    elif depth == 0 or hint in (object, Any):
        yield from ({"x": 1}, {"x": 2})
    elif origin is not None and issubclass(origin, dict):
        for value in islice(values(args[1], depth - 1), 2):
            yield from ({"k": value}, {"l": value})
    else:
        assert args, hint
        inner = list(islice(values(args[0], depth - 1), WIDTH))
        yield from ([value] for value in inner)
        yield [inner[0], inner[-1]]
        yield [inner[-1], inner[0]]


def structs(hint: Any, depth: int) -> Iterator[dict[str, Any]]:
    """Give an object with what it must have, then each of its fields changed in turn."""
    hints = get_type_hints(hint, include_extras=True)
    base = {name: next(values(hints[name], depth - 1)) for name in sorted(hint.__required_keys__)}
    if base:
        yield base
    for name, inner in hints.items():
        for value in islice(values(inner, depth - 1), 6):
            yield {**base, name: value}


def key(api: str, request: dict[str, Any]) -> str:
    if api == "embeddings":
        decoded = decode_embeddings(json.dumps(request).encode())
        request = {**decoded.fields, "input": list(decoded.inputs)}
    return exact_key(CacheQuery("t", "m", "f", request, api=api))


def plain(value: Any, name: str = "") -> Any:
    """Write equal requests alike: text parts alone are their text, a null is no field."""
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items() if v is not None}
    if name == "input":
        return value if isinstance(value, list) and not isinstance(value[0], int) else [value]
    if not isinstance(value, list):
        return value
    if name == "content" and all(
        isinstance(part, dict) and part.keys() == {"type", "text"} and part["type"] == "text"
        for part in value
    ):
        return "".join(part["text"] for part in value)
    return [plain(item) for item in value]


CASES = [
    (api, name, hint)
    for api, params in PARAMS.items()
    for name, hint in get_type_hints(params, include_extras=True).items()
    if name not in {"model", "encoding_format"}
]


@pytest.mark.parametrize(("api", "name", "hint"), CASES, ids=lambda value: str(value)[:30])
def test_field_is_in_the_key_exactly_when_it_can_change_the_answer(
    api: str, name: str, hint: Any
) -> None:
    """Different values are different keys, those of transport fields all one; nested ones too."""
    base = key(api, BASES[api])
    found: dict[str, str] = {}
    tried = [value for value in islice(values(hint), 2000) if acceptable(api, name, value)]
    assert tried
    for value in tried:
        made = key(api, {**BASES[api], name: value})
        if name in TRANSPORT_ONLY or is_neutral(name, value):
            assert made == base
            continue
        meaning = json.dumps(plain({name: value}), sort_keys=True)
        assert found.setdefault(made, meaning) == meaning
    if name not in TRANSPORT_ONLY:
        assert len(set(found.values())) == len(found)
        assert base not in found


def is_neutral(name: str, value: Any) -> bool:
    """Say whether a field with this value says what leaving it out says."""
    known = NEUTRAL.get(name)
    alike = known if isinstance(known, tuple) else (known,)
    return name in NEUTRAL and any(type(v) is type(value) and v == value for v in alike)


def acceptable(api: str, name: str, value: Any) -> bool:
    """Say whether the API takes this value at all: our generator knows no ranges."""
    return not (api == "embeddings" and name == "input" and value == [])


@pytest.mark.parametrize(("api", "name", "hint"), CASES, ids=lambda value: str(value)[:30])
def test_field_is_absent_when_it_is_null(api: str, name: str, hint: Any) -> None:
    """A null field and no field are one request, whatever the field."""
    if name in BASES[api]:
        return
    assert key(api, {**BASES[api], name: None}) == key(api, BASES[api])


@pytest.mark.parametrize(("name", "value"), NEUTRAL.items())
def test_default_is_no_field_of_the_key(name: str, value: Any) -> None:
    """What the API takes for granted can be said or left out, and with other fields too."""
    for said in value if isinstance(value, tuple) else (value,):
        for others in ({}, {"seed": 1}, {"stop": ["x"]}, {"n": 2}):
            if name not in others:
                request = {**BASES["chat"], **others}
                assert key("chat", {**request, name: said}) == key("chat", request)


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize("given", [{"tools": [TOOL]}, {"functions": [TOOL["function"]]}])
def test_choice_of_tools_is_in_the_key_when_there_are_some(given: dict[str, Any]) -> None:
    """Beside tools only `auto` is the default everywhere; engines differ in calls at once."""
    request = {**BASES["chat"], **given}
    assert key("chat", {**request, "tool_choice": "auto"}) == key("chat", request)
    for field in ({"tool_choice": "none"}, {"tool_choice": "required"}):
        assert key("chat", {**request, **field}) != key("chat", request)
    for parallel in (True, False):
        asked = {**request, "parallel_tool_calls": parallel}
        assert key("chat", asked) != key("chat", request)


@pytest.mark.parametrize(
    "field",
    [
        {"n": True}, {"n": 2}, {"logprobs": 0}, {"echo": 0}, {"stop": ""}, {"logit_bias": []},
        {"logit_bias": {"1": 0}}, {"response_format": {"type": "text", "x": 1}}, {"tools": {}},
        {"temperature": 1}, {"top_p": 1}, {"frequency_penalty": 0}, {"presence_penalty": 0},
        {"parallel_tool_calls": False}, {"seed": 0}, {"unheard_of": 1},
    ],
)  # fmt: skip
def test_field_is_in_the_key_when_it_is_no_default_everywhere(field: dict[str, Any]) -> None:
    """Near a default is another value, and what an engine may set for itself counts."""
    assert key("chat", {**BASES["chat"], **field}) != key("chat", BASES["chat"])


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: reversed_keys(value[k]) for k in reversed(list(value))}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("api", "name", "hint"), CASES, ids=lambda value: str(value)[:30])
def test_order_of_keys_never_matters_when_values_are_nested(api: str, name: str, hint: Any) -> None:
    """Objects written in another order, at any depth, give the same key."""
    for value in islice(values(hint), 60):
        if acceptable(api, name, value):
            request = {**BASES[api], name: value}
            assert key(api, reversed_keys(request)) == key(api, request)


def test_nested_null_is_absent_when_it_stands_in_a_message_or_tool() -> None:
    """Nulls deep in messages, tools and formats are no fields either."""
    tool = {"type": "function", "function": {"name": "f", "description": None}}
    format_ = {"type": "json_schema", "json_schema": {"name": "s", "strict": None}}
    message = {"role": "user", "content": "base", "name": None}
    with_nulls = {"messages": [message], "tools": [tool], "response_format": format_}
    without = {
        "messages": [{"role": "user", "content": "base"}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s"}},
    }
    assert key("chat", {"model": "m", **with_nulls}) == key("chat", {"model": "m", **without})


def test_model_and_fingerprint_are_in_the_key() -> None:
    """The model stands beside the request, and counts."""
    request = BASES["chat"]
    queries = [
        CacheQuery("t", "m", "f", request),
        CacheQuery("t", "m2", "f", request),
        CacheQuery("t", "m", "f2", request),
        CacheQuery("t2", "m", "f", request),
        CacheQuery("t", "m", "f", request, api="completions"),
        CacheQuery("t", "m", "f", request, namespace="n"),
    ]
    assert len({exact_key(query) for query in queries}) == len(queries)


def test_encoding_is_not_in_the_key_when_vectors_are_asked_for() -> None:
    """Numbers and base64 are the same vector."""
    asked = {"encoding_format": "base64", **BASES["embeddings"]}
    assert key("embeddings", asked) == key("embeddings", BASES["embeddings"])
