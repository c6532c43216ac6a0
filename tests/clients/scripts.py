"""What the scripted upstream of the client tests answers: the same as a good model would."""

import json

from tests.fakes.upstream import (
    DONE,
    Answer,
    Call,
    Gate,
    chunk,
    last_user_text,
    refusal,
    streamed,
    usage_chunk,
)

CITY = {"city": "Paris", "population": 2}
RESULT = "It is 21 degrees."


def pieces_of(text: str) -> list[str]:
    return [text[i : i + 4] for i in range(0, len(text), 4)]


def tool_call(name: str, arguments: dict[str, object]) -> list[bytes]:
    """Return a streamed answer that calls one tool, its arguments in pieces."""
    start = {"name": name, "arguments": ""}
    calls = [{"index": 0, "id": "call_1", "type": "function", "function": start}]
    rest = [
        {"index": 0, "function": {"arguments": piece}}
        for piece in pieces_of(json.dumps(arguments, ensure_ascii=False))
    ]
    return [
        chunk({"role": "assistant", "content": None, "tool_calls": calls}),
        *(chunk({"tool_calls": [piece]}) for piece in rest),
        chunk({}, finish="tool_calls"),
        usage_chunk(completion=9),
        DONE,
    ]


class Script:
    """Answers by what is asked; ``gate`` holds back the end of an answer to 'endless'."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, call: Call) -> Answer:
        last = call.body["messages"][-1]
        if last["role"] == "tool":
            return Answer(streamed(pieces_of(RESULT)))
        text = last_user_text(call)
        if call.body.get("tools"):
            return Answer(tool_call("weather", {"city": "Zürich"}))
        if call.body.get("response_format", {}).get("type", "text") != "text":
            return Answer(streamed(pieces_of(json.dumps(CITY))))
        if "refuse" in text:
            return refusal(400, {"error": {"message": "no such luck", "type": "invalid"}})
        if "endless" in text:
            return Answer([chunk({"role": "assistant", "content": "One"}), self.gate])
        return Answer(streamed(pieces_of(f"Grüße 🌍 {text}")))
