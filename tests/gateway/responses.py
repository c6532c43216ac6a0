"""Requests to ``/v1/responses``, and their streams by the letter of the SDK's types."""

from typing import Any

import httpx
import msgspec
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

URL = "/v1/responses"
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "input": "Hi", **fields}


def events(response: httpx.Response) -> list[Any]:
    """Return the events of a stream, each one checked against the SDK's type for it."""
    assert response.status_code == 200, response.text
    found = []
    for number, text in enumerate(response.text.split("\n\n")[:-1]):
        name, data = text.split("\n")
        parsed = msgspec.json.decode(data.removeprefix("data: "))
        assert name == f"event: {parsed['type']}"
        assert parsed["sequence_number"] == number
        EVENT.validate_python(parsed, strict=True)
        found.append(parsed)
    return found


def told(item: dict[str, Any]) -> tuple[str, str]:
    if item["type"] == "function_call":
        return item["name"], item["arguments"]
    (part,) = item["content"]
    return part["type"], part.get("text", part.get("refusal"))
