"""The prompts of late, found by any text they hold, so that a split is seen against its nearest.

Flat memory: old prompts make room. Knows hashes of pieces, no tokens.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.lint.turn import Turns

MAX_PROMPTS = 4096
MAX_PIECES = 400_000
MAX_CHARS = 24 << 20
OWNERS = 3  # prompts remembered per piece
LOOKED_AT = 64  # pieces behind the split that look for their prompts
COMPARED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A prompt of before, its place in the log and its pieces."""

    number: int
    place: str
    turns: Turns
    chain: tuple[int, ...]
    pieces: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Where a prompt parts from the nearest one before it.

    ``site`` hashes all that stands before the split. Of the characters ``num_common`` lead both,
    ``num_lost`` stand behind the split in both and were not found in any prompt's prefix.
    """

    nearest: Seen
    site: int
    num_common: int
    num_lost: int


class RecentTurns:
    """Remembers prompts and finds what a new one shares with them."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        self._by_prefix: dict[int, int] = {}
        self._by_piece: dict[int, tuple[int, ...]] = {}
        self._num_pieces = self._num_chars = 0
        self._numbers = 0

    def visit(self, turns: Turns, place: str, group: str) -> Split | None:
        """Compare with the prompts of the same group, and remember; None when nothing is lost."""
        pieces: list[int] = []
        sizes: list[int] = []
        chain: list[int] = []
        at = hash(group)
        for piece, size in turns.pieces():
            at = hash((at, piece))
            pieces.append(piece)
            sizes.append(size)
            chain.append(at)
        depth = self._depth(chain)
        split = None
        if depth < len(pieces) and self._seen:
            split = self._split(turns, group, pieces, sizes, chain, depth)
        self._remember(Seen(self._numbers, place, turns, tuple(chain), tuple(pieces)))
        return split

    def _depth(self, chain: list[int]) -> int:
        """Count the leading pieces that any prompt begins with."""
        low, high = 0, len(chain)
        while low < high:
            middle = (low + high + 1) // 2
            if chain[middle - 1] in self._by_prefix:
                low = middle
            else:
                high = middle - 1
        return low

    def _split(
        self,
        turns: Turns,
        group: str,
        pieces: list[int],
        sizes: list[int],
        chain: list[int],
        depth: int,
    ) -> Split | None:
        found = sum(sizes[:depth])
        best: Split | None = None
        for seen in self._candidates(turns, pieces, depth):
            common = next(
                (i for i, (a, b) in enumerate(zip(chain, seen.chain, strict=False)) if a != b),
                min(len(chain), len(seen.chain)),
            )
            if common in (len(chain), len(seen.chain)):
                continue
            theirs = set(seen.pieces[common:])
            num_common = sum(sizes[:common])
            behind = sum(
                s for p, s in zip(pieces[common:], sizes[common:], strict=True) if p in theirs
            )
            behind = max(behind, _same_words(turns, seen.turns, num_common))
            num_lost = num_common + behind - found
            if best is None or num_lost > best.num_lost:
                site = chain[common - 1] if common else hash(group)
                best = Split(seen, site, num_common, num_lost)
        return best if best is not None and best.num_lost > 0 else None

    def _candidates(self, turns: Turns, pieces: list[int], depth: int) -> Iterator[Seen]:
        votes: dict[int, int] = {}
        behind = pieces[depth : depth + LOOKED_AT]
        for piece in [*behind, *(turn.bag for turn in turns.turns if turn.bag is not None)]:
            for number in self._by_piece.get(piece, ()):
                votes[number] = votes.get(number, 0) + 1
        for number in sorted(votes, key=lambda n: (-votes[n], -n))[:COMPARED]:
            if (seen := self._seen.get(number)) is not None:
                yield seen

    def _remember(self, seen: Seen) -> None:
        self._numbers += 1
        self._seen[seen.number] = seen
        self._num_pieces += len(seen.pieces)
        self._num_chars += seen.turns.num_chars
        for prefix in seen.chain:
            self._by_prefix[prefix] = seen.number
        for piece in {*seen.pieces, *(t.bag for t in seen.turns.turns if t.bag is not None)}:
            owners = self._by_piece.get(piece, ())
            self._by_piece[piece] = (*owners[1 - OWNERS :], seen.number)
        while self._is_full():
            self._forget(self._seen.popitem(last=False)[1])

    def _is_full(self) -> bool:
        return (
            len(self._seen) > MAX_PROMPTS
            or self._num_pieces > MAX_PIECES
            or self._num_chars > MAX_CHARS
        ) and len(self._seen) > 1

    def _forget(self, seen: Seen) -> None:
        self._num_pieces -= len(seen.pieces)
        self._num_chars -= seen.turns.num_chars
        for prefix in seen.chain:
            if self._by_prefix.get(prefix) == seen.number:
                del self._by_prefix[prefix]
        for piece in {*seen.pieces, *(t.bag for t in seen.turns.turns if t.bag is not None)}:
            owners = self._by_piece.get(piece)
            if owners is not None and owners[-1] <= seen.number:
                del self._by_piece[piece]


def _same_words(here: Turns, cached: Turns, num_common: int) -> int:
    """Count the characters behind the split in the turns that hold the same words."""
    at = count = 0
    bags = {turn.bag for turn in cached.turns if turn.bag is not None}
    for turn in here.turns:
        at += len(turn.text)
        if at > num_common and turn.bag in bags:
            count += min(len(turn.text), at - num_common)
    return count
