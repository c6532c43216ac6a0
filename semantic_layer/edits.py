"""Align two texts and name what differs. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Literal

from semantic_layer.analysis import Analysis, Token
from semantic_layer.lexicon import Lexicon, chinese, english

KnowsWord = Callable[[str], bool]
Order = Literal["same", "moved", "moved_bare", "swapped"]
How = Literal["same", "synonym", "joined", "typo", "derived"]

TELLING_LINKS = frozenset(
    "over under before after between against from into during within until till than vs versus "
    "beyond off out up down per since through around without above below inside outside behind "
    "被 比 给 从 到".split()
)
_MIN_TYPO_LETTERS = 4
_MIN_SHARED_LETTERS = 5
_DERIVED_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Pair:
    """Tokens that say the same: indices into both texts' tokens, and how they are alike."""

    one: int
    other: int
    how: How


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two texts side by side. ``only_*`` are the content tokens without a counterpart."""

    one: Analysis
    other: Analysis
    pairs: tuple[Pair, ...]
    only_one: tuple[Token, ...]
    only_other: tuple[Token, ...]
    order: Order

    @property
    def lexicon(self) -> Lexicon:
        """The word lists both texts are read with."""
        return chinese() if self.one.language == "zh" else english()

    @property
    def num_matched(self) -> int:
        """How many content tokens have a counterpart."""
        return sum(self.one.tokens[pair.one].kind != "link" for pair in self.pairs)

    @property
    def coverage(self) -> float:
        """The share of content tokens with a counterpart, over both texts; 1 for two empty ones."""
        total = len(self.one.content) + len(self.other.content)
        return 2 * self.num_matched / total if total else 1.0

    @property
    def num_loose_links(self) -> int:
        """How many telling links ("before", "into") one text has and the other lacks."""
        one = Counter(token.norm for token in self.one.tokens if token.norm in TELLING_LINKS)
        other = Counter(token.norm for token in self.other.tokens if token.norm in TELLING_LINKS)
        return ((one - other) + (other - one)).total()

    def count(self, how: How) -> int:
        """Return how many pairs are alike in this way."""
        return sum(pair.how == how for pair in self.pairs)

    def only_marks(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the words of sets and opposites that one text has and the other lacks."""
        one, other = self.one.marks, self.other.marks
        free_one = {token.norm for token in self.only_one}
        free_other = {token.norm for token in self.only_other}
        return _free(one - other, free_one), _free(other - one, free_other)


def compare(one: Analysis, other: Analysis, knows_word: KnowsWord | None = None) -> Comparison:
    """Align two texts; ``knows_word`` tells real words from misspelt ones."""
    lexicon = chinese() if one.language == "zh" else english()
    pairs = _aligned(one.tokens, other.tokens)
    likenesses: tuple[tuple[How, Callable[[Token, Token], bool]], ...] = (
        ("synonym", lambda a, b: lexicon.are_synonyms(a.norm, b.norm)),
        ("typo", lambda a, b: is_typo(a, b, knows_word)),
        ("derived", lambda a, b: is_derived(a, b, lexicon)),
    )
    for how, alike in likenesses:
        pairs += _matched(one.tokens, other.tokens, pairs, how, alike)
        if how == "synonym":
            pairs += _joined(one.tokens, other.tokens, pairs)
            pairs += [Pair(p.other, p.one, p.how) for p in
                      _joined(other.tokens, one.tokens, [Pair(q.other, q.one, q.how) for q in pairs])]  # fmt: skip
    frame_one, only_one = _answered(
        one.frame, _left(one.tokens, {pair.one for pair in pairs}), other.frame
    )
    frame_other, only_other = _answered(
        other.frame, _left(other.tokens, {pair.other for pair in pairs}), frame_one
    )
    return Comparison(
        replace(one, frame=frame_one),
        replace(other, frame=frame_other),
        tuple(pairs),
        only_one,
        only_other,
        _order(one, other, pairs),
    )


_ASKS = {
    "time": {"when", "howlong"}, "hour": {"when"}, "date": {"when"}, "day": {"when", "howlong"},
    "year": {"when"}, "price": {"howmuch"}, "cost": {"howmuch"}, "amount": {"howmuch"},
    "number": {"howmany"}, "reason": {"why"}, "caus": {"why"}, "plac": {"where"},
    "location": {"where"}, "person": {"who"}, "way": {"how"}, "step": {"how"},
    "schedul": {"howoften"}, "journey time": {"howlong"}, "duration": {"howlong"},
    "frequenci": {"howoften"}, "citi": {"what"}, "countri": {"what"},
}  # fmt: skip


def _answered(frame: str, only: tuple[Token, ...], wanted: str) -> tuple[str, tuple[Token, ...]]:
    """Read "what … time" as "when" where the other text asks "when"."""
    if frame in {"what", "which"} and wanted != frame:
        if {frame, wanted} == {"what", "which"}:
            return wanted, only
        for i, token in enumerate(only):
            if wanted in _ASKS.get(token.norm, ()):
                return wanted, only[:i] + only[i + 1 :]
    return frame, only


def is_typo(one: Token, other: Token, knows_word: KnowsWord | None = None) -> bool:
    """Say whether two words are one, misspelt: a single slip of the fingers, not two real words."""
    a, b = one.surface.casefold(), other.surface.casefold()
    if min(len(a), len(b)) < _MIN_TYPO_LETTERS or not (a.isalpha() and b.isalpha()):
        return False
    if not _one_slip(a, b):
        return False
    if one.name and other.name:
        sets = english().sets
        return (one.norm in sets) != (other.norm in sets) and len(a) > _MIN_SHARED_LETTERS
    if knows_word is None:
        return sorted(a) == sorted(b) and min(len(a), len(b)) > _MIN_SHARED_LETTERS
    return not (knows_word(a) and knows_word(b))


def is_derived(one: Token, other: Token, lexicon: Lexicon) -> bool:
    """Say whether two words share their root ("formation", "form")."""
    a, b = one.norm, other.norm
    if not (a.isascii() and b.isascii() and a.isalpha() and b.isalpha()):
        return False
    if lexicon.are_opposites(a, b) or lexicon.shared_set(a, b):
        return False
    shared = _shared_letters(a, b)
    return shared >= min(_MIN_SHARED_LETTERS, len(a), len(b)) and (
        shared >= len(min(a, b, key=len)) - 1
        and shared >= _DERIVED_SHARE * max(len(a), len(b))
        or shared == min(len(a), len(b)) >= 4
        and max(len(a), len(b)) - shared <= 5
    )


def _aligned(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Pair equal tokens, those in like order first."""
    a, b = [(t.kind, t.norm) for t in one], [(t.kind, t.norm) for t in other]
    pairs = [
        Pair(block.a + k, block.b + k, "same")
        for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        for k in range(block.size)
    ]
    return pairs + _matched(
        one, other, pairs, "same", lambda x, y: x.kind == y.kind and x.norm == y.norm
    )


def _matched(
    one: Sequence[Token],
    other: Sequence[Token],
    pairs: Iterable[Pair],
    how: How,
    alike: Callable[[Token, Token], bool],
) -> list[Pair]:
    used_one, used_other = {p.one for p in pairs}, {p.other for p in pairs}
    found = []
    for i, token in enumerate(one):
        if i in used_one or (how != "same" and token.kind != "word"):
            continue
        for j, candidate in enumerate(other):
            same_kind = how == "same" or candidate.kind == "word"
            if j not in used_other and same_kind and alike(token, candidate):
                used_other.add(j)
                found.append(Pair(i, j, how))
                break
    return found


def _joined(one: Sequence[Token], other: Sequence[Token], pairs: Iterable[Pair]) -> list[Pair]:
    """Pair one word of ``one`` with two neighbours of ``other`` that spell it ("log in", "login").

    The second neighbour is paired with the same word.
    """
    used_one, used_other = {p.one for p in pairs}, {p.other for p in pairs}
    found = []
    for i, token in enumerate(one):
        if i in used_one or token.kind != "word":
            continue
        for j in range(len(other) - 1):
            both = other[j].surface.casefold() + other[j + 1].surface.casefold()
            if {j, j + 1}.isdisjoint(used_other) and both == token.surface.casefold():
                used_other |= {j, j + 1}
                found += [Pair(i, j, "joined"), Pair(i, j + 1, "joined")]
                break
    return found


def _left(tokens: Sequence[Token], used: set[int]) -> tuple[Token, ...]:
    return tuple(t for i, t in enumerate(tokens) if i not in used and t.kind != "link")


def _order(one: Analysis, other: Analysis, pairs: Iterable[Pair]) -> Order:
    """Tell whether what both say comes in the same order, with one block moved, or turned round."""
    by_one = sorted({pair.one: pair.other for pair in pairs}.items())
    wanted = sorted(j for _, j in by_one)
    ranks = [wanted.index(j) for _, j in by_one]
    start, end = 0, len(ranks)
    while start < end and ranks[start] == start:
        start += 1
    while end > start and ranks[end - 1] == end - 1:
        end -= 1
    if start == end:
        return "same"
    middle = ranks[start:end]
    turn = middle.index(min(middle))
    if middle[turn:] + middle[:turn] != sorted(middle):
        return "swapped"
    places = by_one[start:end]
    blocks = [one.tokens[i].norm for i, _ in places]
    if _is_coordinated(one.text, other.text, "".join(blocks[:turn]), "".join(blocks[turn:])):
        return "moved"
    heads = (places[0], places[turn])
    movable = any(_is_movable(one.tokens, i) or _is_movable(other.tokens, j) for i, j in heads)
    return "moved" if movable else "moved_bare"


def _is_movable(tokens: Sequence[Token], index: int) -> bool:
    """Say whether a block that begins here may stand elsewhere: it is, or follows, a link."""
    return (
        any(token.kind == "link" for token in tokens[max(0, index - 1) : index + 1])
        or tokens[index].free
    )


def _is_coordinated(one: str, other: str, here: str, there: str) -> bool:
    """Say whether two Chinese blocks are only the sides of one "and" or "or"."""
    return any(
        f"{here}{sign}{there}" in one and f"{there}{sign}{here}" in other for sign in _AND_OR
    )


_AND_OR = ("和", "与", "跟", "或", "及", "还是", "或者", "、")


def _free(marks: frozenset[str], free: set[str]) -> frozenset[str]:
    """Keep single letters only where that very letter has no counterpart."""
    return frozenset(
        mark for mark in marks if mark in free or (len(mark) > 1 and not mark.isascii())
    )


def _one_slip(a: str, b: str) -> bool:
    """Say whether one insertion, deletion, substitution or exchange of neighbours leads over."""
    if a == b or abs(len(a) - len(b)) > 1:
        return a == b
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    rest_a, rest_b = a[start:], b[start:]
    if len(rest_a) == len(rest_b):
        exchanged = rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:]
        return exchanged or rest_a[1:] == rest_b[1:]
    return rest_a[1:] == rest_b or rest_a == rest_b[1:]


def _shared_letters(a: str, b: str) -> int:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count
