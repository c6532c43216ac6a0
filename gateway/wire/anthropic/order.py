"""How Anthropic's turns must follow each other, and what the last of them means. Pure.

Source: Anthropic documentation, "Tool use" (handling results) and "Prefill Claude's response".
"""

from typing import Any

from gateway.wire.validation import wrong


def check_results(messages: list[dict[str, Any]]) -> None:
    """Judge whether tool calls and their results go together.

    Raises:
        BadRequest: a result has no call in the turn before, or a call no result in the next.
    """
    open_calls: dict[str, str] = {}
    may_answer: set[str] = set()
    last_role = ""
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "assistant" and last_role != "assistant":
            _refuse_open(open_calls)
            may_answer = set()
        for place, block in enumerate(content if isinstance(content, list) else ()):
            where = f"messages[{at}].content[{place}]"
            match block:
                case {"type": "tool_use", "id": str(id_)}:
                    open_calls[id_] = where
                    may_answer.add(id_)
                case {"type": "tool_result", "tool_use_id": str(id_)}:
                    if id_ not in may_answer:
                        raise wrong(f"{where}.tool_use_id", f"{id_[:64]!r} was not called before")
                    open_calls.pop(id_, None)
        last_role = role
    if last_role != "assistant":
        _refuse_open(open_calls)


def is_prefilled(messages: list[dict[str, Any]]) -> bool:
    """Say whether the last turn is the beginning of the answer.

    Raises:
        BadRequest: it ends with white space, which no answer can follow rightly.
    """
    last = messages[-1]
    content = last["content"]
    if last["role"] != "assistant" or not content:
        return False
    where = f"messages[{len(messages) - 1}].content"
    text = content if isinstance(content, str) else content[-1].get("text")
    if not isinstance(text, str):
        return False
    if text != text.rstrip():
        raise wrong(where, "the beginning of an answer must not end with white space")
    return True


def _refuse_open(calls: dict[str, str]) -> None:
    for id_, where in calls.items():
        raise wrong(where, f"the call {id_[:64]!r} has no tool_result in the turn after it")
