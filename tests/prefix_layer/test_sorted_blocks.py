"""Order is kept whatever comes and goes."""

import random

from prefix_layer.block import Block
from prefix_layer.sorted_blocks import SortedBlocks


def test_neighbours_are_those_of_a_sorted_list_when_blocks_come_and_go() -> None:
    """Over many chunks, with splits and chunks that empty."""
    rng = random.Random(0)
    blocks, there = SortedBlocks(), dict[tuple[int, ...], Block]()
    for i in range(6000):
        tokens = (7, rng.randrange(10), rng.randrange(2000))
        coming = rng.random() < (0.8 if i < 3000 else 0.2)
        if coming and tokens not in there:
            block = Block(i)
            block.token_ids = tokens
            blocks.add(block)
            there[tokens] = block
        elif there and not coming:
            blocks.remove(there.pop(rng.choice(list(there))))
        if i % 100 == 0:
            order = sorted(there)
            place = sum(other < tokens for other in order)
            before = there[order[place - 1]] if place else None
            after = there[order[place]] if place < len(order) else None
            assert blocks.around(tokens) == (before, after)
    assert len(blocks) == len(there)
    for block in list(there.values()):
        blocks.remove(block)
    assert not blocks
    assert blocks.around((1,)) == (None, None)
