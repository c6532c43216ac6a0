"""Streamed requests in numbers, over few raw connections: cheap enough to count memory by."""

import asyncio
import json
from collections.abc import Callable

END = b"0\r\n\r\n"


def request(prompt: str, *, model: str = "stub-model", cache_control: str = "") -> bytes:
    """Return one streamed chat request as it goes over the wire."""
    body = {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": prompt}],
    }
    data = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
    )
    if cache_control:
        head += f"cache-control: {cache_control}\r\n"
    return f"{head}\r\n".encode() + data


async def stream_all(
    port: int, requests: list[bytes], *, connections: int, on_done: Callable[[int], None]
) -> None:
    """Send the requests over so many connections; ``on_done`` is told how many have ended."""
    waiting, num_done = iter(requests), 0

    async def connection() -> None:
        nonlocal num_done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for data in waiting:
                writer.write(data)
                answer = await reader.readuntil(END)
                assert b" 200 " in answer[:16], answer[:200]
                assert b"data: [DONE]" in answer, answer[-200:]
                num_done += 1
                on_done(num_done)
        finally:
            writer.close()

    await asyncio.gather(*(connection() for _ in range(connections)))
