"""Several async streams as one, in the order of arrival."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def merge(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[T, None]:
    """Yield what any stream gives; the first error ends all. Closing closes every stream."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for item in only:
                yield item
        return
    awaited = {asyncio.ensure_future(anext(stream)): stream for stream in streams}
    try:
        while awaited:
            done, _ = await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                stream = awaited.pop(future)
                try:
                    item = future.result()
                except StopAsyncIteration:
                    continue
                awaited[asyncio.ensure_future(anext(stream))] = stream
                yield item
    finally:
        for future in awaited:
            future.cancel()
        await asyncio.gather(*awaited, return_exceptions=True)
        for stream in streams:
            await stream.aclose()
