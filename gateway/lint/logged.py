"""One request of a log in the chat API's words, whatever API or tracer wrote it. Pure.

Knows OpenAI chat, completion and Responses bodies, Anthropic messages, our own exports and
requests, batch files, and LangChain runs with their child runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.errors import BadRequest
from gateway.lint.langchain import runs_of
from gateway.lint.responses import is_response, read_response
from gateway.wire.anthropic.chat import translate_prompt

Row = dict[str, Any]
WRAPPERS = ("request", "body", "kwargs")  # our rows, OpenAI's batch files, SDK call logs


@dataclass(frozen=True, slots=True)
class Logged:
    """One request; ``fields`` names where each of ``messages`` stands in ``row``.

    A raw prompt is one message with the role ``prompt``, which no template renders. ``tools`` are
    as the chat API has them and stand in the field ``tools_field``.
    """

    row: Row
    model: str
    messages: list[Row]
    fields: list[str]
    tools: list[Row]
    tools_field: str


def read_logged(row: Row) -> Iterator[Logged]:
    """Give the requests of one row: one, or those of a trace.

    Raises:
        BadRequest: there is none, or it is malformed; names the field.
    """
    if "run_type" in row:
        for run in runs_of(row):
            yield Logged(row, run.model, run.messages, run.fields, run.tools, run.tools_field)
        return
    body, where = row, ""
    for name in WRAPPERS:
        if not _is_body(body) and isinstance(body.get(name), dict):
            body, where = body[name], f"{where}{name}."
    if body.get("messages") is None and isinstance(body.get("prompt"), list):
        yield from _read_prompts(row, body, where)
    else:
        yield _read_body(row, body, where)


def _is_body(body: Row) -> bool:
    return "messages" in body or "prompt" in body or is_response(body)


def _read_body(row: Row, body: Row, where: str) -> Logged:
    model = body["model"] if isinstance(body.get("model"), str) else ""
    messages, tools = body.get("messages"), body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise BadRequest(f"{where}tools must be a list of tools", param=f"{where}tools")
    if messages is None and isinstance(body.get("prompt"), str):
        prompt = [{"role": "prompt", "content": body["prompt"]}]
        return Logged(row, model, prompt, [f"{where}prompt"], [], "")
    if messages is None and is_response(body):
        said, fields, listed = read_response(body, where)
        return Logged(row, model, said, fields, listed, f"{where}tools")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(
            f"{where}messages must be a list with at least one message", param=f"{where}messages"
        )
    if _is_anthropic(body):
        return _read_anthropic(row, body, where, model)
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            field = f"{where}messages[{at}]"
            raise BadRequest(f"{field} must be an object with a role", param=field)
    fields = [f"{where}messages[{at}].content" for at in range(len(messages))]
    return Logged(row, model, messages, fields, tools, f"{where}tools")


def _read_prompts(row: Row, body: Row, where: str) -> Iterator[Logged]:
    """Give each of a completion's prompts; token ids hold no text to judge."""
    model = body["model"] if isinstance(body.get("model"), str) else ""
    if not body["prompt"]:
        raise BadRequest(f"{where}prompt must not be an empty list", param=f"{where}prompt")
    for at, prompt in enumerate(body["prompt"]):
        field = f"{where}prompt[{at}]"
        if isinstance(prompt, str):
            yield Logged(row, model, [{"role": "prompt", "content": prompt}], [field], [], "")
        elif not _is_token_ids(prompt):
            raise BadRequest(f"{field} must be text or token ids", param=field)


def _is_token_ids(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, list) and all(isinstance(token, int) for token in value)
    )


def _is_anthropic(body: Row) -> bool:
    if "system" in body or any("input_schema" in tool for tool in body.get("tools") or []):
        return True
    return any(
        isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result", "thinking")
        for message in body["messages"]
        if isinstance(message, dict) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _read_anthropic(row: Row, body: Row, where: str, model: str) -> Logged:
    translated, origins = translate_prompt({"model": model or "unnamed", **body})
    return Logged(
        row,
        model,
        translated["messages"],
        [where + origin for origin in origins],
        translated.get("tools") or [],
        f"{where}tools",
    )


def texts_at(row: Row, field: str, change: Callable[[str], str]) -> None:
    """Replace each text that stands in a field of a row."""
    steps = _steps(field)
    place = _follow(row, steps[:-1])
    last: Any = int(steps[-1]) if isinstance(place, list) else steps[-1]
    _change(place, last, change)


def value_at(row: Row, field: str) -> Any:
    """Return what stands in a field of a row."""
    return _follow(row, _steps(field))


def _steps(field: str) -> list[str]:
    return field.replace("[", ".").replace("]", "").split(".")


def _follow(row: Row, steps: list[str]) -> Any:
    place: Any = row
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    return place


def _change(place: Any, key: Any, change: Callable[[str], str]) -> None:
    value = place[key]
    if isinstance(value, str):
        place[key] = change(value)
    elif isinstance(value, list):
        for at in range(len(value)):
            _change(value, at, change)
    elif isinstance(value, dict):
        inner = next((name for name in ("text", "content") if name in value), None)
        if inner is not None:
            _change(value, inner, change)
