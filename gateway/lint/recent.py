"""The prompts of late, found by any text they hold, so that a split is seen against its nearest.

Flat memory: old prompts make room. Knows hashes of pieces, no tokens.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from gateway.lint.turn import Turns

MAX_PROMPTS = 4096
MAX_PIECES = 400_000
MAX_CHARS = 24 << 20
OWNERS = 12  # prompts remembered per piece
LOOKED_AT = 64  # pieces behind the split that look for their prompts
COMPARED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """A prompt and the hashes of its pieces; ``chain`` hashes all up to each of them."""

    group: str
    turns: Turns
    pieces: tuple[int, ...]
    sizes: tuple[int, ...]
    chain: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """A prompt of before and its place in the log; ``mended`` is it without its faults.

    ``is_mended`` is no prompt of the log, but one without its faults.
    """

    number: int
    place: str
    trail: Trail
    mended: Turns
    is_mended: bool

    @property
    def turns(self) -> Turns:
        """The prompt as it was."""
        return self.trail.turns


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
        self._by_mended_prefix: dict[int, int] = {}
        self._by_piece: dict[int, tuple[int, ...]] = {}
        self._num_pieces = self._num_chars = 0
        self._numbers = 0
        self._first_group: str | None = None

    def split(self, trail: Trail, *, mended: bool, last: int | None = None) -> Split | None:
        """Compare with prompts of the group, and ``mended`` ones; None when nothing is lost.

        ``last`` is the key of the turn that ends those to be compared with; None: any.
        """
        depth = self._depth(trail.chain, mended=mended)
        if depth == len(trail.pieces) or not self._seen:
            return None
        return self._split(trail, depth, mended=mended, last=last)

    def num_found(self, trail: Trail, *, mended: bool) -> int:
        """Count the leading characters of a prompt that another one begins with."""
        return sum(trail.sizes[: self._depth(trail.chain, mended=mended)])

    def remember(self, trail: Trail, place: str, mended: Turns, *, is_mended: bool) -> None:
        """Keep a prompt, and make room for it."""
        seen = Seen(self._numbers, place, trail, mended, is_mended)
        self._numbers += 1
        self._seen[seen.number] = seen
        self._num_pieces += len(trail.pieces)
        self._num_chars += trail.turns.num_chars
        prefixes = self._by_mended_prefix if is_mended else self._by_prefix
        prefixes.update(dict.fromkeys(trail.chain, seen.number))
        for piece in self._keys(trail):
            owners = self._by_piece.get(piece, ())
            self._by_piece[piece] = (*owners[1 - OWNERS :], seen.number)
        while self._is_full():
            self._forget(self._seen.popitem(last=False)[1])

    def _depth(self, chain: tuple[int, ...], *, mended: bool) -> int:
        """Count the leading pieces that a prompt, or also a ``mended`` one, begins with."""
        depth = _num_known(chain, self._by_prefix)
        return max(depth, _num_known(chain, self._by_mended_prefix)) if mended else depth

    def _split(self, trail: Trail, depth: int, *, mended: bool, last: int | None) -> Split | None:
        found = sum(trail.sizes[:depth])
        best: Split | None = None
        for seen in self._candidates(trail, depth, mended=mended, last=last):
            common = _num_common(trail.chain, seen.trail.chain)
            if common in (len(trail.chain), len(seen.trail.chain)):
                continue
            num_common = sum(trail.sizes[:common])
            num_lost = num_common + _num_behind(trail, seen.trail, common, num_common) - found
            if best is None or num_lost > best.num_lost:
                site = trail.chain[common - 1] if common else hash(trail.group)
                best = Split(seen, site, num_common, num_lost)
        return best if best is not None and best.num_lost > 0 else None

    def _candidates(
        self, trail: Trail, depth: int, *, mended: bool, last: int | None
    ) -> Iterator[Seen]:
        votes: dict[int, int] = {}
        family = self._family(trail)
        behind = trail.pieces[depth : depth + LOOKED_AT]
        for piece in [*behind, *_bags(trail)]:
            for number in self._by_piece.get(piece ^ family, ()):
                votes[number] = votes.get(number, 0) + 1
        ranked = (self._seen.get(n) for n in sorted(votes, key=lambda n: (-votes[n], -n)))
        fit = (seen for seen in ranked if seen is not None and (mended or not seen.is_mended))
        ended = (seen for seen in fit if last is None or seen.turns.turns[-1].key == last)
        yield from islice(ended, COMPARED)

    def _family(self, trail: Trail) -> int:
        """Return what tells pieces of its group from those of others, which share no cache."""
        if self._first_group is None:
            self._first_group = trail.group
        return 0 if trail.group == self._first_group else hash(trail.group)

    def _keys(self, trail: Trail) -> set[int]:
        keys = {*trail.pieces, *_bags(trail)}
        family = self._family(trail)
        return {key ^ family for key in keys} if family else keys

    def _is_full(self) -> bool:
        return (
            len(self._seen) > MAX_PROMPTS
            or self._num_pieces > MAX_PIECES
            or self._num_chars > MAX_CHARS
        ) and len(self._seen) > 1

    def _forget(self, seen: Seen) -> None:
        self._num_pieces -= len(seen.trail.pieces)
        self._num_chars -= seen.turns.num_chars
        prefixes = self._by_mended_prefix if seen.is_mended else self._by_prefix
        for prefix in seen.trail.chain:
            if prefixes.get(prefix) == seen.number:
                del prefixes[prefix]
        for piece in self._keys(seen.trail):
            owners = self._by_piece.get(piece)
            if owners is not None and owners[-1] <= seen.number:
                del self._by_piece[piece]


def trail_of(turns: Turns, group: str) -> Trail:
    """Hash the pieces of a prompt of a group, such as a model's."""
    pieces = [piece for turn in turns.turns for piece in turn.pieces]
    sizes = [size for turn in turns.turns for size in turn.sizes]
    chain: list[int] = []
    at = hash(group)
    for piece in pieces:
        at = hash((at, piece))
        chain.append(at)
    return Trail(group, turns, tuple(pieces), tuple(sizes), tuple(chain))


def _num_known(chain: tuple[int, ...], prefixes: Mapping[int, int]) -> int:
    low, high = 0, len(chain)
    while low < high:
        middle = (low + high + 1) // 2
        if chain[middle - 1] in prefixes:
            low = middle
        else:
            high = middle - 1
    return low


def _num_common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Count the places up to which two chains are alike; a chain that parts stays apart."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[middle - 1] == b[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low


def _num_behind(here: Trail, cached: Trail, common: int, num_common: int) -> int:
    """Count the characters behind the split that stand behind it in both."""
    theirs = set(cached.pieces[common:])
    pairs = zip(here.pieces[common:], here.sizes[common:], strict=True)
    behind = sum([size for piece, size in pairs if piece in theirs])
    return max(behind, _same_words(here.turns, cached.turns, num_common))


def _bags(trail: Trail) -> list[int]:
    return [turn.bag for turn in trail.turns.turns if turn.bag is not None]


def _same_words(here: Turns, cached: Turns, num_common: int) -> int:
    """Count the characters behind the split in the turns that hold the same words."""
    at = count = 0
    bags = {turn.bag for turn in cached.turns if turn.bag is not None}
    for turn in here.turns:
        at += len(turn.text)
        if at > num_common and turn.bag in bags:
            count += min(len(turn.text), at - num_common)
    return count
