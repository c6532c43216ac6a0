"""Lark grammars of answers that call tools. Pure.

Text is free until it comes to the format's trigger; from there on names are those of tools and
arguments follow their schemas, so that a call that was begun can only become a whole and valid one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.backends.json_schema import lenient_schema, strict_schema
from gateway.backends.tool_format import ToolFormat
from gateway.backends.tool_use import Tool, ToolUse
from gateway.errors import BadRequest

MAX_CALLS = 16  # of one answer, so that a small model comes to an end


def tool_grammar(
    use: ToolUse, form: ToolFormat, special_ids: Mapping[str, int], content: str | None = None
) -> str:
    """Return the Lark grammar of an answer.

    ``special_ids`` are the format's markers that are special tokens. ``content`` is a Lark
    expression for an answer without calls; None lets it be any text.

    Raises:
        BadRequest: a schema that must be followed cannot be; names the tool.
    """
    writer = _Writer(form, special_ids)
    rules = [*writer.start(use, content), *writer.calls(use)]
    for at, tool in enumerate(use.tools):
        rules += writer.arguments(at, tool, is_strict=tool.strict or use.required)
    return "\n".join(rules)


class _Writer:
    def __init__(self, form: ToolFormat, special_ids: Mapping[str, int]) -> None:
        self._form = form
        self._special_ids = special_ids
        names = "|".join(re.escape(name) for name in special_ids)
        self._special = re.compile(f"({names})") if names else None

    def start(self, use: ToolUse, content: str | None) -> Iterator[str]:
        trigger = self._literal(self._form.trigger)
        if use.required:
            yield f"start: {trigger} calls"
        elif content is not None:
            yield f"start: content | {trigger} calls"
            yield f"content: {content}"
        elif not self._form.anywhere:
            yield f"start: TEXT? | {trigger} calls"
            yield f"TEXT: /[^{re.escape(self._form.trigger[0])}](.|\\n)*/"
        else:
            yield "start: TEXT | head calls"
            is_token = self._form.trigger in self._special_ids
            yield f"head: TEXT {trigger}" if is_token else f"head[lazy]: TEXT {trigger}"
            yield "TEXT: /(.|\\n)*/"

    def calls(self, use: ToolUse) -> Iterator[str]:
        """Give the rules of what follows the trigger."""
        form, places = self._form, range(len(use.tools))
        more = f"({self._literal(form.separator)} call){{0,{MAX_CALLS - 1}}}"
        yield f"calls: first {more if use.parallel else ''} {self._literal(form.closing)}"
        yield "first: " + " | ".join(f"first_{at}" for at in places)
        if use.parallel:
            yield "call: " + " | ".join(f"call_{at}" for at in places)
        for at, tool in enumerate(use.tools):
            rest = f"arguments_{at} {self._literal(form.after_arguments)}"
            yield f"first_{at}: {self._head(form.behind_trigger, tool)} {rest}"
            if use.parallel:
                yield f"call_{at}: {self._head(form.before_name, tool)} {rest}"

    def arguments(self, at: int, tool: Tool, *, is_strict: bool) -> Iterator[str]:
        """Give the rules of one tool's arguments."""
        prepare = strict_schema if is_strict else lenient_schema
        parameters = _object_schema(tool)
        if not self._form.python:
            yield f"arguments_{at}: %json {prepare(parameters, tool.field)}"
            return
        properties = list(parameters.get("properties", {}).items())
        yield f"arguments_{at}: a_{at}_0_first"
        for place, (key, value) in enumerate(properties):
            schema = _with_definitions(value, parameters)
            yield f"p_{at}_{place}: {json.dumps(key + '=')} %json {prepare(schema, tool.field)}"
            is_required = key in parameters.get("required", ())
            for state, comma in (("first", ""), ("more", '", " ')):
                taken = f"{comma}p_{at}_{place} a_{at}_{place + 1}_more"
                left = "" if is_required else f" | a_{at}_{place + 1}_{state}"
                yield f"a_{at}_{place}_{state}: {taken}{left}"
        for state in ("first", "more"):
            yield f'a_{at}_{len(properties)}_{state}: ""'

    def _head(self, before: str, tool: Tool) -> str:
        return self._literal(before + tool.name + self._form.after_name)

    def _literal(self, text: str) -> str:
        """Return an expression for fixed text, special tokens as such."""
        parts = [text] if self._special is None else self._special.split(text)
        return " ".join(
            f"<[{self._special_ids[part]}]>"
            if part in self._special_ids
            else json.dumps(part, ensure_ascii=False)
            for part in parts
            if part
        )


def _object_schema(tool: Tool) -> dict[str, Any]:
    """Return the parameters as a schema that lets only objects through."""
    if not isinstance(tool.parameters, dict):
        raise BadRequest(f"{tool.field} must be a JSON Schema, an object", param=tool.field)
    kind = tool.parameters.get("type", "object")
    if kind not in ("object", ["object"]):
        raise BadRequest(f"{tool.field}.type must be object", param=tool.field)
    return {**tool.parameters, "type": "object"}


def _with_definitions(schema: Any, root: dict[str, Any]) -> Any:
    kept = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**schema, **kept} if isinstance(schema, dict) else schema
