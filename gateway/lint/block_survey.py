"""Which blocks of text move about between the prompts of a log, and the order they get. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gateway.lint.order import MIN_BLOCK_CHARS, Cut, split_rank

MAX_BLOCKS = 200_000

MayMove = Callable[[Sequence[tuple[str, str]], str], bool]


@dataclass(slots=True)
class _Block:
    """How often a block was seen; None where its place or what follows it changed."""

    from_start: int | None
    from_end: int | None
    follower: int | None
    count: int = 1


class BlockSurvey:
    """Learns blocks from texts, then arranges texts; blocks that never move keep their places.

    ``cut`` gives the blocks of a text and the gaps between them; ``may_move`` is asked about the
    blocks that would change places in a text, each with its rank, and all the text beside them.
    """

    def __init__(self, cut: Cut, may_move: MayMove = lambda _, __: True) -> None:
        self._cut = cut
        self._may_move = may_move
        self._blocks: dict[int, _Block] = {}

    def learn(self, text: str) -> None:
        """Take one text of the log."""
        plain = [split_rank(block)[1] for block in self._cut(text)[0]]
        for at, block in enumerate(plain):
            if len(block) < MIN_BLOCK_CHARS:
                continue
            end = len(plain) - at
            follower = hash(plain[at + 1]) if end > 1 else None
            known = self._blocks.get(hash(block))
            if known is not None:
                known.count += 1
                known.from_start = at if known.from_start == at else None
                known.from_end = end if known.from_end == end else None
                known.follower = follower if known.follower == follower else None
            elif len(self._blocks) < MAX_BLOCKS:
                self._blocks[hash(block)] = _Block(at, end, follower)

    def can_arrange(self) -> bool:
        """Say whether blocks move, and each alone: what always follows another belongs to it."""
        moving = {key for key, block in self._blocks.items() if _moves(block)}
        return bool(moving) and not any(self._blocks[key].follower in moving for key in moving)

    def arrange(self, text: str) -> str:
        """Put the blocks that move into one order, the most used first; ranks stay in place."""
        blocks, gaps = self._cut(text)
        parts = [split_rank(block) for block in blocks]
        places = [at for at, (_, plain) in enumerate(parts) if self._is_moving(plain)]
        own = "\n".join(block for at, block in enumerate(blocks) if at not in places)
        if not places or not self._may_move([parts[at] for at in places], own):
            return text
        ordered = sorted((parts[at][1] for at in places), key=self._rank)
        for at, plain in zip(places, ordered, strict=True):
            parts[at] = (parts[at][0], plain)
        return "".join(_woven([rank + plain for rank, plain in parts], gaps))

    def _is_moving(self, plain: str) -> bool:
        known = self._blocks.get(hash(plain)) if len(plain) >= MIN_BLOCK_CHARS else None
        return known is not None and _moves(known)

    def _rank(self, plain: str) -> tuple[int, str]:
        return -self._blocks[hash(plain)].count, plain


def _moves(block: _Block) -> bool:
    return block.count > 1 and block.from_start is None and block.from_end is None


def _woven(blocks: Sequence[str], gaps: Sequence[str]) -> Iterator[str]:
    for block, gap in zip(blocks, [*gaps, ""], strict=True):
        yield block
        yield gap
