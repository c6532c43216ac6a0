"""Blocks in the order of their tokens; any number of them at the same cost."""

from bisect import bisect_left

from prefix_layer.block import Block

_MAX_CHUNK = 512


class SortedBlocks:
    """A sorted list in chunks of at most 512, so that an insertion moves few; no chunk is empty."""

    def __init__(self) -> None:
        self._chunks: list[list[Block]] = []

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __bool__(self) -> bool:
        return bool(self._chunks)

    def add(self, block: Block) -> None:
        """Put a block in its place."""
        if not self._chunks:
            self._chunks.append([block])
            return
        i = min(self._chunk_of(block.token_ids), len(self._chunks) - 1)
        chunk = self._chunks[i]
        chunk.insert(_place(chunk, block.token_ids), block)
        if len(chunk) > _MAX_CHUNK:
            middle = len(chunk) // 2
            self._chunks[i : i + 1] = [chunk[:middle], chunk[middle:]]

    def remove(self, block: Block) -> None:
        """Take a block out that is here."""
        i = self._chunk_of(block.token_ids)
        chunk = self._chunks[i]
        place = _place(chunk, block.token_ids)
        assert chunk[place] is block, f"{block} is out of order"
        del chunk[place]
        if not chunk:
            del self._chunks[i]

    def around(self, token_ids: tuple[int, ...]) -> tuple[Block | None, Block | None]:
        """Give the last block before these tokens' place, and the first from it on."""
        i = self._chunk_of(token_ids)
        if i == len(self._chunks):
            return (self._chunks[-1][-1] if self._chunks else None), None
        chunk = self._chunks[i]
        place = _place(chunk, token_ids)
        if place:
            return chunk[place - 1], chunk[place]
        return (self._chunks[i - 1][-1] if i else None), chunk[0]

    def _chunk_of(self, token_ids: tuple[int, ...]) -> int:
        return bisect_left(self._chunks, token_ids, key=lambda chunk: chunk[-1].token_ids)


def _place(chunk: list[Block], token_ids: tuple[int, ...]) -> int:
    return bisect_left(chunk, token_ids, key=lambda block: block.token_ids)
