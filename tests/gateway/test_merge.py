"""Several streams as one: nothing lost, errors and closing reach every stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from gateway.backends.merge import merge


class Source:
    """Yields ``items``, then raises ``error`` or waits for ever if told so."""

    def __init__(self, *items: str, error: Exception | None = None, endless: bool = False) -> None:
        self.items = items
        self.error = error
        self.endless = endless
        self.closed = False

    async def stream(self) -> AsyncGenerator[str, None]:
        try:
            for item in self.items:
                await asyncio.sleep(0)
                yield item
            if self.error is not None:
                raise self.error
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed = True


@pytest.mark.parametrize("count", [1, 3])
async def test_every_item_comes_in_its_streams_order_when_merged(count: int) -> None:
    """Each stream's items keep their order."""
    sources = [Source(*(f"{name}{at}" for at in range(4))) for name in range(count)]
    items = [item async for item in merge([source.stream() for source in sources])]
    for name in range(count):
        assert [item for item in items if item[0] == str(name)] == [
            f"{name}{at}" for at in range(4)
        ]
    assert len(items) == 4 * count


@pytest.mark.parametrize("others", [0, 2])
async def test_error_ends_all_when_one_stream_fails(others: int) -> None:
    """One failure is the failure of all, and leaves no stream open."""
    sources = [Source("a", error=ValueError("broke"))]
    sources += [Source("b", endless=True) for _ in range(others)]
    with pytest.raises(ValueError, match="broke"):
        async for _ in merge([source.stream() for source in sources]):
            pass
    assert all(source.closed for source in sources)


@pytest.mark.parametrize("count", [1, 3])
async def test_every_stream_is_closed_when_the_reader_goes(count: int) -> None:
    """Closing the whole closes the parts."""
    sources = [Source("a", endless=True) for _ in range(count)]
    async with aclosing(merge([source.stream() for source in sources])) as items:
        await anext(items)
    assert all(source.closed for source in sources)
