"""An ASGI app on a real socket, served as the product serves it, inside the test's own loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from granian.constants import Interfaces
from granian.server.embed import Server
from litestar.types import ASGIApp


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """Serve the app on a free port; give its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Server(
        app, port=port, interface=Interfaces.ASGINL, log_enabled=False, websockets=False
    )
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(10):
            while not await _answers(port):
                await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
        await asyncio.wait([serving], timeout=10)


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
