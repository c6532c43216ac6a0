"""Tools as a system message, for chat templates that have no place for them. Pure.

The format is that of Hermes and Qwen models. Source: the SmolLM2 model card: only the 1.7B model
was trained to call functions, between the same tags; the smaller ones were not.
"""

import json
from collections.abc import Sequence
from typing import Any

_DEFAULT_SYSTEM = "You are a helpful assistant."
_BEFORE = (
    "# Tools\n\n"
    "You can call functions to help with the user's request. Their signatures stand between "
    "<tools> and </tools>, one in a line:\n<tools>\n"
)
_AFTER = (
    "\n</tools>\n\n"
    "To call a function, write its name and its arguments as a JSON object between <tool_call> "
    'and </tool_call>:\n<tool_call>\n{"name": "function-name", "arguments": {"argument": "value"}}'
    "\n</tool_call>\n"
    "Results come back between <tool_response> and </tool_response>."
)


def with_tools(
    history: list[dict[str, Any]], tools: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the history with the tools told in its system message, which is made if need be."""
    told = _BEFORE + "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools) + _AFTER
    if history and history[0]["role"] == "system":
        first = history[0]["content"]
        return [{**history[0], "content": f"{first}\n\n{told}" if first else told}, *history[1:]]
    return [{"role": "system", "content": f"{_DEFAULT_SYSTEM}\n\n{told}"}, *history]
