"""The chat API's older way to call functions, in terms of tools. Pure.

Source: OpenAI API reference, "Create chat completion": functions, function_call (deprecated).
"""

import re
from dataclasses import replace
from typing import Any

import msgspec

from gateway.backends.base import Delta, Event, Finish, Work
from gateway.errors import BadRequest

_TOOL = re.compile(r"^tools(\[\d+\])?(\.function)?")


def speaks_of_functions(body: dict[str, Any]) -> bool:
    """Say whether a request offers functions, not tools."""
    return bool(body.get("functions")) and not body.get("tools")


def with_tools(work: Work) -> Work:
    """Return the work with its functions as tools, of which one may be called once.

    Raises:
        BadRequest: ``functions`` is no list, or ``function_call`` is none of the API's forms.
    """
    functions, choice = work.body["functions"], work.body.get("function_call")
    if not isinstance(functions, list):
        raise BadRequest("functions must be a list", param="functions")
    body = {k: v for k, v in work.body.items() if k not in ("functions", "function_call")}
    body["tools"] = [{"type": "function", "function": function} for function in functions]
    body["parallel_tool_calls"] = False
    match choice:
        case None | "auto" | "none":
            body["tool_choice"] = choice
        case {"name": str(name)}:
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
        case _:
            message = "function_call must be none, auto or an object with a name"
            raise BadRequest(message, param="function_call")
    return replace(work, body=body)


def as_function_call(event: Event) -> Event:
    """Return an event whose tool call is told as the older ``function_call``."""
    match event:
        case Delta(tool_calls=[_, *_]):
            pieces = [call.get("function", {}) for call in event.tool_calls]
            call = {key: value for piece in pieces for key, value in piece.items()}
            call["arguments"] = "".join(piece.get("arguments", "") for piece in pieces)
            extra = {**event.extra, "function_call": call}
            return msgspec.structs.replace(event, tool_calls=[], extra=extra)
        case Finish(reason="tool_calls"):
            return msgspec.structs.replace(event, reason="function_call")
    return event


def in_older_words(error: BadRequest) -> BadRequest:
    """Return the error with the field it names as the request spells it."""
    if error.param is None:
        return error
    param = _TOOL.sub(lambda found: f"functions{found[1] or ''}", error.param)
    param = param.replace("tool_choice.function", "function_call").replace(
        "tool_choice", "function_call"
    )
    error.message = error.message.replace(error.param, param, 1)
    error.param = param
    return error
