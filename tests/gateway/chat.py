"""Chat requests to a gateway in process, and how their answers are read."""

from typing import Any

import httpx
import msgspec

from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline

URL = "/v1/chat/completions"
HI = {"role": "user", "content": "Hi"}
TEXT = "晚安🌙 café 👩‍🚀"


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [HI], **fields}


def events(response: httpx.Response) -> list[Any]:
    """Return the JSON events of a stream that ends in one [DONE]."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in response.text.split("\n\n") if line]
    assert all(line.startswith("data: ") and "\n" not in line for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert lines.count("data: [DONE]") == 1
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in lines[:-1]]


def joined(chunks: list[Any], index: int = 0) -> str:
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["index"] == index
    )


async def faked(pipeline: FakePipeline, **fields: Any) -> httpx.Response:
    """Ask a gateway whose pipeline is a fake."""
    headers = fields.pop("headers", None)
    async with MemoryGateway(FakeBackend([])).client(pipeline=pipeline) as client:
        return await client.post(URL, json=body(**fields), headers=headers)
