"""LangChain's traces: the model calls in a run and its child runs, as chat requests. Pure.

Source: langchain_core 1.8, tracers/core.py (inputs of chat and text models) and load/dump.py (the
form of messages); langsmith 0.15, RunBase.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gateway.errors import BadRequest

Row = dict[str, Any]
MODEL_RUNS = ("llm", "chat_model")

_ROLES = {
    "human": "user",
    "HumanMessage": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
    "HumanMessageChunk": "user",
}


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One model call of a trace; ``fields`` names where its messages stand in the outermost run."""

    model: str
    messages: list[Row]
    fields: list[str]
    tools: list[Row]
    tools_field: str


def runs_of(run: Row, where: str = "") -> Iterator[ModelRun]:
    """Give the model calls in a run, in order; a run without one gives none.

    Raises:
        BadRequest: a model call is malformed; names the field.
    """
    if run.get("run_type") in MODEL_RUNS:
        yield from _model_calls(run, where)
    for at, child in enumerate(run.get("child_runs") or []):
        if isinstance(child, dict):
            yield from runs_of(child, f"{where}child_runs[{at}].")


def _model_calls(run: Row, where: str) -> Iterator[ModelRun]:
    inputs = run.get("inputs") or {}
    extra = run.get("extra") or {}
    asked = extra.get("invocation_params") or {}
    tools = [tool for tool in asked.get("tools") or [] if isinstance(tool, dict)]
    model = _model(asked, extra.get("metadata") or {})
    tools_field = f"{where}extra.invocation_params.tools"
    if isinstance(prompts := inputs.get("prompts"), list):
        for at, prompt in enumerate(prompts):
            message = {"role": "prompt", "content": str(prompt)}
            yield ModelRun(model, [message], [f"{where}inputs.prompts[{at}]"], [], "")
        return
    messages = inputs.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest(f"{where}inputs.messages must be a list of messages", param="inputs")
    nested = isinstance(messages[0], list)
    for at, batch in enumerate(messages if nested else [messages]):
        field = f"{where}inputs.messages" + (f"[{at}]" if nested else "")
        read = [_message(message, f"{field}[{i}]") for i, message in enumerate(batch)]
        shown, fields = [message for message, _ in read], [place for _, place in read]
        yield ModelRun(model, shown, fields, [_tool(tool) for tool in tools], tools_field)


def _model(asked: Row, metadata: Row) -> str:
    names = (asked.get("model"), asked.get("model_name"), metadata.get("ls_model_name"))
    return next((name for name in names if isinstance(name, str)), "")


def _message(message: Any, field: str) -> tuple[Row, str]:
    """Return a message of any of LangChain's forms, and where its content stands."""
    match message:
        case {"lc": _, "id": [*_, str(kind)], "kwargs": dict(said)}:
            return _said(kind, said), f"{field}.kwargs.content"
        case {"type": str(kind), "data": dict(said)}:
            return _said(kind, said), f"{field}.data.content"
        case {"role": str(role)}:
            return {**message, "role": _ROLES.get(role, role)}, f"{field}.content"
        case {"type": str(kind), "content": _}:
            return _said(kind, message), f"{field}.content"
    raise BadRequest(f"{field} is no message", param=field)


def _said(kind: str, said: Row) -> Row:
    role = said.get("role") if kind in ("chat", "ChatMessage") else None
    kind = kind.removesuffix("Chunk")
    message: Row = {"role": role or _ROLES.get(kind, kind), "content": said.get("content")}
    if isinstance(said.get("tool_call_id"), str):
        message["tool_call_id"] = said["tool_call_id"]
    if calls := said.get("tool_calls"):
        message["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call["name"], "arguments": call.get("args") or {}},
            }
            for call in calls
            if isinstance(call, dict) and isinstance(call.get("name"), str)
        ]
    return message


def _tool(tool: Row) -> Row:
    """Return a tool in the chat API's form, from that or Anthropic's."""
    if "input_schema" not in tool:
        return tool
    parts = (("name", "name"), ("description", "description"), ("parameters", "input_schema"))
    function = {ours: tool[theirs] for ours, theirs in parts if theirs in tool}
    return {"type": "function", "function": function}
