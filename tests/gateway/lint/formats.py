"""Chat requests as other APIs and tracers write them, and where their fields stand then."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
_KINDS = {"system": "SystemMessage", "user": "HumanMessage", "assistant": "AIMessage"}
_MESSAGE = re.compile(r"messages\[(\d+)\]\.content")


@dataclass(frozen=True)
class Format:
    """``write`` writes a row of the chat API; ``message`` and ``first`` name its contents.

    ``tool`` is how much of the path to a tool's part it shares.
    """

    write: Callable[[Row], Row]
    message: str
    first: str
    tools: str = "tools"
    shift: int = 0
    tool: int | None = len("tools[1]")

    def field(self, ours: str) -> str:
        """Return where a field of the chat API stands."""
        found = _MESSAGE.fullmatch(ours)
        if found is None:
            return self.tools + ours[: self.tool].removeprefix("tools")
        at = int(found[1])
        return self.message.format(at - self.shift) if at else self.first


def _anthropic(row: Row) -> Row:
    system, *said = row["messages"]
    body = {"model": "m", "max_tokens": 9, "system": system["content"], "messages": said}
    tools = [
        {
            "name": tool["function"]["name"],
            "description": tool["function"]["description"],
            "input_schema": tool["function"]["parameters"],
        }
        for tool in row.get("tools", ())
    ]
    return {**body, "tools": tools} if tools else body


def _responses(row: Row) -> Row:
    system, *said = row["messages"]
    body = {"model": "m", "instructions": system["content"], "input": [*map(_item, said)]}
    tools = [{"type": "function", **tool["function"]} for tool in row.get("tools", ())]
    return {**body, "tools": tools} if tools else body


def _item(message: Row) -> Row:
    kind = "output_text" if message["role"] == "assistant" else "input_text"
    return {"role": message["role"], "content": [{"type": kind, "text": message["content"]}]}


def _langchain(row: Row) -> Row:
    said = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", _KINDS[message["role"]]],
            "kwargs": {"content": message["content"]},
        }
        for message in row["messages"]
    ]
    asked = {"model": "m", **({"tools": row["tools"]} if "tools" in row else {})}
    return {
        "run_type": "llm",
        "inputs": {"messages": [said]},
        "extra": {"invocation_params": asked},
    }


_TRACED = "inputs.messages[0][{}].kwargs.content"
FORMATS = {
    "anthropic": Format(_anthropic, "messages[{}].content", "system", shift=1),
    "responses": Format(_responses, "input[{}].content", "instructions", shift=1),
    "langchain": Format(
        _langchain, _TRACED, _TRACED.format(0), "extra.invocation_params.tools", tool=None
    ),
    "own log": Format(
        lambda row: {"request": row, "outcome": "miss"},
        "request.messages[{}].content",
        "request.messages[0].content",
        "request.tools",
        tool=None,
    ),
}
