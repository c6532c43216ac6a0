"""Anthropic's Messages request as the chat body that caches and backends know.

Two requests of one meaning, here and in the chat API, become equal bodies. What marks prompt
caching, accounting or beta features of Anthropic's own has no effect on an answer of ours and is
dropped; unknown fields travel on.
"""

from dataclasses import dataclass
from typing import Any

from gateway.wire.anthropic.content import Turns
from gateway.wire.anthropic.order import check_results, is_prefilled
from gateway.wire.anthropic.request import (
    MessagesRequest,
    PromptIn,
    check_messages,
)
from gateway.wire.validation import convert, decode_object, wrong

_TRANSLATED = frozenset(
    {
        "messages", "system", "tools", "tool_choice", "output_config", "stop_sequences",
        "metadata", "service_tier", "strata",
    }
)  # fmt: skip
_DROPPED = frozenset(
    {
        "cache_control", "context_management", "diagnostics", "n", "speed", "stream_options",
        "user_profile_id", "workspace_id",
    }
)  # fmt: skip
_REFUSED = ("container", "mcp_servers", "inference_geo")
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_SERVICE_TIERS = {"auto": "auto", "standard_only": "default"}


@dataclass(frozen=True, slots=True)
class TranslatedMessages:
    """A validated request; ``body`` is its chat body.

    ``origins`` names where each chat message came from, for errors of the backend.
    """

    request: MessagesRequest
    body: dict[str, Any]
    origins: list[str]


def decode_messages(data: bytes) -> TranslatedMessages:
    """Validate and translate the body of ``POST /v1/messages``.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    tree = decode_object(data)
    request = convert(tree, MessagesRequest)
    body, turns = _prompt(tree, request)
    body |= _options(request)
    return TranslatedMessages(request, body, turns.origins)


def decode_prompt(data: bytes) -> tuple[PromptIn, dict[str, Any]]:
    """Validate the body of ``POST /v1/messages/count_tokens``; return it with its chat body.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    tree = decode_object(data)
    request = convert(tree, PromptIn)
    body, _ = _prompt(tree, request)
    return request, body


def translate_prompt(tree: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Translate a request that is already decoded JSON; return the origins of its messages too.

    Raises:
        BadRequest: anything is wrong with it; names the field.
    """
    body, turns = _prompt(tree, convert(tree, PromptIn))
    return body, turns.origins


def _prompt(tree: dict[str, Any], request: PromptIn) -> tuple[dict[str, Any], Turns]:
    check_messages(request)
    for name in _REFUSED:
        if tree.get(name) is not None:
            raise wrong(name, "is not supported here")
    turns = Turns()
    turns.system(tree.get("system"), "system")
    check_results(tree["messages"])
    for at, message in enumerate(tree["messages"]):
        turns.add(message, f"messages[{at}]")
    body = {
        name: value
        for name, value in tree.items()
        if value is not None and name not in _TRANSLATED and name not in _DROPPED
    }
    body["messages"] = turns.messages
    if is_prefilled(tree["messages"]):
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    if request.thinking is not None and request.thinking.type == "disabled":
        del body["thinking"]
    return body | _tools(request) | _output(request), turns


def _tools(request: PromptIn) -> dict[str, Any]:
    translated: dict[str, Any] = {}
    if request.tools:
        translated["tools"] = [
            {
                "type": "function",
                "function": {
                    name: value
                    for name, value in (
                        ("name", tool.name),
                        ("description", tool.description),
                        ("parameters", tool.input_schema),
                        ("strict", tool.strict or None),
                    )
                    if value is not None
                },
            }
            for tool in request.tools
        ]
    choice = request.tool_choice
    if choice is not None:
        translated["tool_choice"] = (
            {"type": "function", "function": {"name": choice.name}}
            if choice.type == "tool"
            else _TOOL_CHOICES[choice.type]
        )
        if choice.disable_parallel_tool_use:
            translated["parallel_tool_calls"] = False
    return translated


def _output(request: PromptIn) -> dict[str, Any]:
    config, translated = request.output_config, dict[str, Any]()
    if config is None:
        return translated
    if config.format is not None:
        schema = {"name": "output", "schema": config.format.schema, "strict": True}
        translated["response_format"] = {"type": "json_schema", "json_schema": schema}
    if config.effort is not None:
        translated["reasoning_effort"] = "xhigh" if config.effort == "max" else config.effort
    return translated


def _options(request: MessagesRequest) -> dict[str, Any]:
    translated: dict[str, Any] = {}
    if request.stop_sequences:
        translated["stop"] = request.stop_sequences
    if request.metadata is not None and request.metadata.user_id is not None:
        translated["user"] = request.metadata.user_id
    if request.service_tier is not None:
        translated["service_tier"] = _SERVICE_TIERS[request.service_tier]
    return translated
