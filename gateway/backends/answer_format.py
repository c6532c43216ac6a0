"""What an answer's text must be, read from a chat request. Pure.

``response_format`` is OpenAI's; ``structured_outputs`` and ``guided_json``, ``guided_regex``,
``guided_choice`` and ``guided_grammar`` are vLLM's names for the same and more.
Source: vLLM documentation, "Structured Outputs".
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.backends.json_schema import strict_schema
from gateway.errors import BadRequest
from prefix_layer import Grammar

MAX_PATTERN_CHARS = 10_000
MAX_GRAMMAR_CHARS = 100_000
_ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The language of an answer's text; ``field`` of the request asks for it."""

    grammar: Grammar
    field: str


def read_format(body: dict[str, Any]) -> AnswerFormat | None:
    """Return what the answer must be; None where any text will do.

    Raises:
        BadRequest: the wish is malformed, cannot be granted or contradicts itself; names the field.
    """
    wishes = [
        _KINDS[kind](value, field)
        for field, kind, value in _named(body)
        if value is not None and value is not False
    ]
    if (response_format := body.get("response_format")) is not None:
        wishes += _response_format(response_format)
    if len(wishes) > 1:
        raise BadRequest(
            f"{wishes[0].field} and {wishes[1].field} exclude each other", param=wishes[0].field
        )
    return wishes[0] if wishes else None


def _named(body: dict[str, Any]) -> list[tuple[str, str, Any]]:
    named = [(f"guided_{kind}", kind, body.get(f"guided_{kind}")) for kind in _KINDS]
    nested = body.get("structured_outputs")
    if nested is None:
        return named
    if not isinstance(nested, dict):
        raise BadRequest("structured_outputs must be an object", param="structured_outputs")
    known = [kind for kind in nested if kind in _KINDS]
    if unknown := [kind for kind in ("structural_tag",) if nested.get(kind) is not None]:
        field = f"structured_outputs.{unknown[0]}"
        raise BadRequest(f"{field} is not supported", param=field, code="unsupported")
    return named + [(f"structured_outputs.{kind}", kind, nested[kind]) for kind in known]


def _response_format(wish: Any) -> list[AnswerFormat]:
    match wish:
        case {"type": "text"}:
            return []
        case {"type": "json_object"}:
            return [_json(_ANY_OBJECT, "response_format")]
        case {"type": "json_schema", "json_schema": {**named}}:
            field = "response_format.json_schema.schema"
            schema = named.get("schema")
            return [_json(_ANY_OBJECT if schema is None else schema, field)]
        case {"type": "json_schema"}:
            field = "response_format.json_schema"
            raise BadRequest(f"{field} must be an object with a schema", param=field)
        case {"type": str(kind)}:
            raise BadRequest(
                f"response_format.type is {kind[:40]!r}; it must be text, json_object or"
                " json_schema",
                param="response_format.type",
            )
    raise BadRequest("response_format must be an object with a type", param="response_format")


def _json(schema: Any, field: str) -> AnswerFormat:
    return AnswerFormat(Grammar("json_schema", strict_schema(schema, field)), field)


def _json_or_text(schema: Any, field: str) -> AnswerFormat:
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise BadRequest(f"{field} is not valid JSON: {error}", param=field) from None
    return _json(schema, field)


def _any_json(_: Any, field: str) -> AnswerFormat:
    return _json(_ANY_OBJECT, field)


def _regex(pattern: Any, field: str) -> AnswerFormat:
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN_CHARS:
        raise BadRequest(
            f"{field} must be a regular expression of at most {MAX_PATTERN_CHARS} characters",
            param=field,
        )
    return AnswerFormat(Grammar("regex", pattern), field)


def _choice(choices: Any, field: str) -> AnswerFormat:
    if (
        not isinstance(choices, list)
        or not choices
        or not all(isinstance(text, str) and text for text in choices)
    ):
        raise BadRequest(f"{field} must be a list of non-empty strings", param=field)
    alternatives = " | ".join(lark_text(text) for text in choices)
    if len(alternatives) > MAX_GRAMMAR_CHARS:
        raise BadRequest(f"{field} is longer than {MAX_GRAMMAR_CHARS} characters", param=field)
    return AnswerFormat(Grammar("lark", f"start: {alternatives}"), field)


def _grammar(grammar: Any, field: str) -> AnswerFormat:
    if not isinstance(grammar, str) or len(grammar) > MAX_GRAMMAR_CHARS:
        raise BadRequest(
            f"{field} must be a Lark grammar of at most {MAX_GRAMMAR_CHARS} characters",
            param=field,
        )
    return AnswerFormat(Grammar("lark", grammar), field)


def lark_text(text: str) -> str:
    """Return a Lark literal that matches exactly this text."""
    return json.dumps(text, ensure_ascii=False)


_KINDS: dict[str, Callable[[Any, str], AnswerFormat]] = {
    "json": _json_or_text,
    "json_object": _any_json,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
}
