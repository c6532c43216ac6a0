"""Which blocks of text move about between the prompts of a log, and the order they get. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from gateway.lint.order import MIN_BLOCK_CHARS, Cut

MAX_BLOCKS = 200_000
MAX_PAIRS = 500_000
MAX_PAIRED = 64  # blocks of a text

MayMove = Callable[[Sequence[str], str], bool]


@dataclass(slots=True)
class _Block:
    """How often a block was seen; None where its place or what follows it changed."""

    from_start: int | None
    from_end: int | None
    follower: int | None
    count: int = 1


class BlockSurvey:
    """Learns blocks from texts, then arranges texts; blocks that never move keep their places.

    A block is its whole text, with its number or label. ``cut`` gives the blocks of a text and the
    gaps between them; ``may_move`` is asked about the blocks that would change places in a text,
    and all the text beside them.
    """

    def __init__(self, cut: Cut, may_move: MayMove) -> None:
        self._cut = cut
        self._may_move = may_move
        self._blocks: dict[int, _Block] = {}
        self._pairs: set[int] = set()

    def learn(self, text: str) -> None:
        """Take one text of the log."""
        plain = self._cut(text)[0]
        self._learn_pairs(plain)
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

    def _learn_pairs(self, blocks: Sequence[str]) -> None:
        held = [hash(block) for block in blocks if len(block) >= MIN_BLOCK_CHARS][:MAX_PAIRED]
        if len(self._pairs) < MAX_PAIRS:
            self._pairs.update(hash(pair) for pair in combinations(held, 2))

    def can_arrange(self) -> bool:
        """Say whether blocks move, and each alone: what always follows another belongs to it."""
        moving = {key for key, block in self._blocks.items() if _moves(block)}
        return bool(moving) and not any(self._blocks[key].follower in moving for key in moving)

    def arrange(self, text: str) -> str:
        """Put the blocks that stood in other orders into one, the most used first.

        They must stand side by side: what stands between may be a label of one of them.
        """
        blocks, gaps = self._cut(text)
        moving = [at for at, block in enumerate(blocks) if self._is_moving(block)]
        places = [at for at in moving if any(self._turns(blocks[at], blocks[b]) for b in moving)]
        own = "\n".join(block for at, block in enumerate(blocks) if at not in places)
        shown = [blocks[at] for at in places]
        if not places or places[-1] - places[0] >= len(places) or not self._may_move(shown, own):
            return text
        for at, block in zip(places, sorted(shown, key=self._rank), strict=True):
            blocks[at] = block
        return "".join(_woven(blocks, gaps))

    def _is_moving(self, block: str) -> bool:
        known = self._blocks.get(hash(block)) if len(block) >= MIN_BLOCK_CHARS else None
        return known is not None and _moves(known)

    def _turns(self, a: str, b: str) -> bool:
        """Say whether each of two blocks stood before the other in some text."""
        pair = (hash(a), hash(b))
        return a != b and hash(pair) in self._pairs and hash(pair[::-1]) in self._pairs

    def _rank(self, block: str) -> tuple[int, str]:
        return -self._blocks[hash(block)].count, block


def _moves(block: _Block) -> bool:
    return block.count > 1 and block.from_start is None and block.from_end is None


def _woven(blocks: Sequence[str], gaps: Sequence[str]) -> Iterator[str]:
    for block, gap in zip(blocks, [*gaps, ""], strict=True):
        yield block
        yield gap
