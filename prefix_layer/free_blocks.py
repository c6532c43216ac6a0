"""Which blocks hold nothing, and where to place new ones so that sequences stay in runs.

A sequence whose blocks have consecutive ids needs no gather when it is attended to.
"""

_FREE = 1


class FreeBlocks:
    """A byte per block id, 1 when free; searched with `bytearray.find`, so at memory speed."""

    def __init__(self, num_blocks: int) -> None:
        self._map = bytearray([_FREE]) * num_blocks
        self._count = num_blocks
        self._cursor = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, block_id: int) -> bool:
        return self._map[block_id] == _FREE

    def add(self, block_id: int) -> None:
        """Give a block back."""
        assert block_id not in self, f"block {block_id} is free already"
        self._map[block_id] = _FREE
        self._count += 1

    def take(self, count: int, after: int | None, room: int) -> list[int]:
        """Take ``count`` ids: first those that follow ``after``, then a run, then what there is.

        ``room`` is how many more blocks the sequence is likely to want behind a new run; the next
        sequence is placed beyond them while there is space.
        """
        assert count <= self._count, "taking more blocks than are free"
        ids = [] if after is None else self._following(after, count)
        self._mark_taken(ids)
        if len(ids) < count:
            more = self._run_or_scattered(count - len(ids), room)
            self._mark_taken(more)
            ids += more
        return ids

    def _following(self, after: int, count: int) -> list[int]:
        last = after + 1
        while last < len(self._map) and last - after <= count and self._map[last]:
            last += 1
        return list(range(after + 1, last))

    def _run_or_scattered(self, count: int, room: int) -> list[int]:
        for length in (count + room, count):
            start = self._find_run(length)
            if start is not None:
                self._cursor = (start + length) % len(self._map)
                return list(range(start, start + count))
        return self._scattered(count)

    def _find_run(self, length: int) -> int | None:
        run = bytes([_FREE]) * length
        start = self._map.find(run, self._cursor)
        if start < 0:
            start = self._map.find(run)
        return None if start < 0 else start

    def _scattered(self, count: int) -> list[int]:
        ids: list[int] = []
        block_id = -1
        while len(ids) < count:
            block_id = self._map.find(_FREE, block_id + 1)
            ids.append(block_id)
        return ids

    def _mark_taken(self, ids: list[int]) -> None:
        for block_id in ids:
            self._map[block_id] = 0
        self._count -= len(ids)
