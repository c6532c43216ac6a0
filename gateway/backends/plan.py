"""What an answer may be: any text, text of one form, calls of tools, or one of these. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.backends.answer_format import AnswerFormat, read_format
from gateway.backends.tool_format import ToolFormat
from gateway.backends.tool_grammar import tool_grammar
from gateway.backends.tool_use import read_tool_use
from gateway.errors import BadRequest
from prefix_layer import Grammar


@dataclass(frozen=True, slots=True)
class Plan:
    """How one request's answer is made and read.

    ``grammar`` is None for free text; ``source`` is the field that asks for it. ``tools`` are the
    definitions that the model is shown; none means that no call is looked for in the answer.
    """

    grammar: Grammar | None = None
    source: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list)


def read_plan(body: dict[str, Any], form: ToolFormat, special_ids: Mapping[str, int]) -> Plan:
    """Read the plan of a chat request for a model that writes calls in one format.

    Raises:
        BadRequest: what is asked for is malformed or cannot be done; names the field.
    """
    answer_format = read_format(body)
    use = read_tool_use(body)
    if use is None:
        if answer_format is None:
            return Plan()
        return Plan(answer_format.grammar, answer_format.field)
    content = None if answer_format is None else _as_expression(answer_format)
    grammar = Grammar("lark", tool_grammar(use, form, special_ids, content))
    return Plan(grammar, "tools", use.shown)


def _as_expression(answer_format: AnswerFormat) -> str:
    """Return a format as a part of a Lark rule."""
    text = answer_format.grammar.text
    match answer_format.grammar.kind:
        case "json_schema":
            return f"%json {text}"
        case "regex":
            return "/" + re.sub(r"(?<!\\)/", r"\\/", text).replace("\n", r"\n") + "/"
        case "lark":
            raise BadRequest(
                f"{answer_format.field} and tools exclude each other", param=answer_format.field
            )
