"""What runs beside the traffic ends with the gateway."""

import asyncio
from contextlib import AsyncExitStack, suppress

from gateway.lifespan import _in_background


async def test_work_in_the_background_ends_when_a_cancellation_was_lost() -> None:
    """A library that swallows one cancellation does not hold the closing up forever."""
    began, ended = asyncio.Event(), []

    async def work() -> None:
        with suppress(asyncio.CancelledError):
            began.set()
            await asyncio.Event().wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async with asyncio.timeout(60), AsyncExitStack() as stack:
        await _in_background(stack, work())
        await began.wait()
    assert ended == [True]
