"""Whatever the schema, a random model's answer in it validates."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from gateway.backends.json_schema import strict_schema
from gateway.errors import BadRequest
from prefix_layer.engine import Engine
from prefix_layer.messages import Generate, Grammar, Sampling
from tests.prefix_layer.driving import drive, make_engine

EOS = 2
NAMES = st.sampled_from(["a", "b", "name", "été", 'q"\\', "x y", "类"])
NUMBERS = st.integers(-1000, 1000)
SHORT = {3 + ord(char) - ord("!"): 12.0 for char in '"}],'} | {EOS: 12.0}  # ends sooner


def bounded(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    def ordered(bounds: list[int]) -> dict[str, Any]:
        return {"type": kind, "minimum": min(bounds), "maximum": max(bounds)}

    return st.lists(NUMBERS, min_size=2, max_size=2).map(ordered)


VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5) | st.just(-0.5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
LEAVES = st.one_of(
    st.sampled_from(["null", "boolean", "integer", "number"]).map(lambda kind: {"type": kind}),
    bounded("integer"),
    bounded("number"),
    st.just({"type": "integer", "multipleOf": 7}),
    st.tuples(st.integers(0, 3), st.integers(3, 6)).map(
        lambda t: {"type": "string", "minLength": t[0], "maxLength": t[1]}
    ),
    st.sampled_from(["^[a-c]{1,3}$", "é|中", "^\\d+-\\w$", "^.{0,3}$"]).map(
        lambda pattern: {"type": "string", "pattern": pattern, "maxLength": 8}
    ),
    st.sampled_from(["date", "time", "uuid", "ipv4", "date-time"]).map(
        lambda form: {"type": "string", "format": form}
    ),
    st.lists(VALUES, min_size=1, max_size=4).map(lambda values: {"enum": values}),
    VALUES.map(lambda value: {"const": value}),
    st.just({"type": ["null", "integer"]}),
    st.just({"$ref": "#/$defs/shared"}),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = [name for name in properties if draw(st.booleans())]
    more = draw(st.sampled_from(["closed", "open", "typed", "silent"]))
    if more != "silent":
        extra: Any = {"closed": False, "open": True, "typed": {"type": "boolean"}}[more]
        schema["additionalProperties"] = extra
    return schema


def arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.integers(0, 2), st.integers(2, 3))
    return st.tuples(inner, bounds).map(
        lambda t: {"type": "array", "items": t[0], "minItems": t[1][0], "maxItems": t[1][1]}
    ) | st.lists(inner, min_size=1, max_size=2).map(
        lambda first: {"type": "array", "prefixItems": first, "items": False}
    )


SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        objects(inner),
        arrays(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
    ),
    max_leaves=5,
).map(lambda schema: {**schema, "$defs": {"shared": {"enum": ["s", 1, None]}}})


@pytest.fixture(scope="module")
def engine(byte_llama: Path) -> Engine:
    return make_engine(byte_llama, kv_tokens=4096)


@pytest.fixture(scope="module")
def tokenizer(byte_llama: Path) -> Tokenizer:
    return Tokenizer.from_file(str(byte_llama / "tokenizer.json"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(schema=SCHEMAS, seed=st.integers(0, 2**31))
def test_answer_validates_when_schema_and_model_are_random(
    engine: Engine, tokenizer: Tokenizer, schema: dict[str, Any], seed: int
) -> None:
    """An answer that ended by itself is JSON and valid; only unsatisfiable schemas are refused."""
    jsonschema.Draft202012Validator.check_schema(schema)
    try:
        grammar = Grammar("json_schema", strict_schema(schema, "schema"))
    except BadRequest as refused:
        raise AssertionError(f"{refused.message}: {schema}") from refused
    sampling = Sampling(
        200, temperature=1.0, seed=seed, stop_token_ids=[EOS], grammar=grammar, logit_bias=SHORT
    )
    answer = drive(engine, [Generate("r", [5, 6, 7], sampling)])["r"]
    if answer.failed is not None:
        assert "nsatisfiable" in answer.failed.message, (answer.failed.message, schema)
        return
    if answer.finish_reason == "stop":
        value = json.loads(tokenizer.decode(answer.token_ids))
        jsonschema.Draft202012Validator(schema).validate(value)
