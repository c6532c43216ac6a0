"""What happens to cached blocks, told to whoever listens. Knows no sockets and no tensors."""

from typing import Literal, Protocol

from prefix_layer.block import Block
from prefix_layer.eviction.ghosts import Ghosts

Departure = Literal["evicted", "forgotten", "replaced"]


class BlockListener(Protocol):
    """Hears of every block that enters or leaves the index, in the order it happens."""

    def stored(self, block: Block) -> None:
        """Take note of a block that can be found from now on."""
        ...

    def removed(self, block: Block, why: Departure) -> None:
        """Take note of a block, still whole, that is about to leave.

        ``evicted`` made room for others, ``forgotten`` was asked for, ``replaced`` goes on in a
        block that holds more.
        """
        ...


class EvictedHashes:
    """The last ``limit`` blocks that had to make room, by their hashes."""

    def __init__(self, limit: int = 1 << 15) -> None:
        self._limit = limit
        self._hashes = Ghosts()

    def __contains__(self, own_hash: bytes) -> bool:
        return own_hash in self._hashes

    def stored(self, block: Block) -> None:
        """Strike out a block that came back."""
        assert block.block_hash is not None
        self._hashes.discard(block.block_hash)

    def removed(self, block: Block, why: Departure) -> None:
        """Remember a block that was evicted; the oldest of too many is struck out."""
        if why != "evicted":
            return
        assert block.block_hash is not None
        self._hashes.add(block.block_hash, self._limit)
