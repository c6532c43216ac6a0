"""What a prefix cache of some size would find of the prompts that pass, one after the other.

Blocks are whole, the least used make room, and a prompt always computes its last token, as engines
do. Not modelled: requests that overlap, and generated tokens.
"""

from collections import OrderedDict

ID_BYTES = 4


class PrefixReplay:
    """Counts tokens: ``num_tokens`` of all prompts, ``num_cached`` found in blocks."""

    def __init__(self, block_size: int, num_blocks: int) -> None:
        self._block_bytes = block_size * ID_BYTES
        self._block_size = block_size
        self._num_blocks = num_blocks
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self.num_tokens = 0
        self.num_cached = 0

    def visit(self, group: str, ids: bytes) -> int:
        """Look up and then keep a prompt; return the tokens found."""
        blocks, step = self._blocks, self._block_bytes
        at = hash(group)
        chain = []
        for start in range(0, len(ids) - step + 1, step):
            at = hash((at, ids[start : start + step]))
            chain.append(at)
        num_usable = (len(ids) // ID_BYTES - 1) // self._block_size
        usable = chain[:num_usable]
        found = next((i for i, block in enumerate(usable) if block not in blocks), len(usable))
        for block in reversed(chain):
            if block in blocks:
                blocks.move_to_end(block)
            else:
                blocks[block] = None
        while len(blocks) > self._num_blocks:
            blocks.popitem(last=False)
        cached = found * self._block_size
        self.num_tokens += len(ids) // ID_BYTES
        self.num_cached += cached
        return cached
