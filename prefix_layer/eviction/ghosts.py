"""Names of blocks that were evicted not long ago."""

from collections import OrderedDict


class Ghosts:
    """Block hashes in the order of eviction; holds no blocks.

    A plain dict is no queue: finding its first key walks over all that were deleted before it.
    """

    def __init__(self) -> None:
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hashes)

    def __contains__(self, block_hash: bytes) -> bool:
        return block_hash in self._hashes

    def add(self, block_hash: bytes, limit: int) -> None:
        """Remember a block as the latest, and forget the oldest beyond ``limit``."""
        self._hashes.pop(block_hash, None)
        self._hashes[block_hash] = None
        while len(self._hashes) > limit:
            self._hashes.popitem(last=False)

    def discard(self, block_hash: bytes) -> bool:
        """Forget a block; say whether it was remembered."""
        known = block_hash in self._hashes
        self._hashes.pop(block_hash, None)
        return known
