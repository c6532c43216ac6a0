"""Align two texts and name what differs. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise

from semantic_layer.comparison.amounts import converted
from semantic_layer.comparison.order import How, Order, Pair, is_exchange, is_mutual, order_of
from semantic_layer.text.analysis import Analysis, Token
from semantic_layer.text.lexicon import Lexicon, chinese, english
from semantic_layer.text.likeness import KnowsWord, is_derived, is_misspelt_name, is_typo
from semantic_layer.text.stemming import stem


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
        telling = self.lexicon.classes["telling"]
        one = Counter(token.norm for token in self.one.tokens if token.norm in telling)
        other = Counter(token.norm for token in self.other.tokens if token.norm in telling)
        return ((one - other) + (other - one)).total()

    @property
    def is_exchange(self) -> bool:
        """Whether two things changed places around what ties them, and nothing else moved."""
        return is_exchange(self.one, self.other, self.pairs)

    @property
    def is_mutual(self) -> bool:
        """Whether two places changed theirs, and what lies between them is asked for."""
        return is_mutual(self.one, self.other, self.pairs)

    @property
    def is_renamed(self) -> bool:
        """Whether a name may end otherwise in one text than in the other ("Alien", "Aliens")."""
        return bool(self.endings)

    @property
    def endings(self) -> list[tuple[Token, Token]]:
        """The pairs of one word with two endings, at least one of them a name; no weekdays."""
        same = ((self.one.tokens[p.one], self.other.tokens[p.other]) for p in self.pairs)
        return [
            (a, b)
            for a, b in same
            if (a.name or b.name)
            and a.norm == b.norm
            and a.surface.casefold() != b.surface.casefold()
            and not is_misspelt_name(a.surface.casefold(), b.surface.casefold())
            and self.lexicon.shared_set(a.norm, stem("sunday")) is None
        ]

    def count(self, how: How) -> int:
        """Return how many pairs are alike in this way."""
        return sum(pair.how == how for pair in self.pairs)

    def only_marks(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the words of sets and opposites that one text has and the other lacks."""
        one, other = self.one.marks, self.other.marks
        free_one = {token.norm for token in self.only_one} | self._lone_links(self.one, self.other)
        free_other = {t.norm for t in self.only_other} | self._lone_links(self.other, self.one)
        free_one |= one - {token.norm for token in self.one.tokens}
        free_other |= other - {token.norm for token in self.other.tokens}
        return _free(one - other, free_one), _free(other - one, free_other)

    @staticmethod
    def _lone_links(here: Analysis, there: Analysis) -> set[str]:
        """Return the linking words ("on", "before") of one text that the other never uses."""
        used = {token.norm for token in there.tokens}
        return {t.norm for t in here.tokens if t.kind == "link" and t.norm not in used}


def compare(one: Analysis, other: Analysis, knows_word: KnowsWord | None = None) -> Comparison:
    """Align two texts; ``knows_word`` tells real words from misspelt ones."""
    lexicon = chinese() if one.language == "zh" else english()
    pairs = _aligned(one.tokens, other.tokens)
    likenesses: tuple[tuple[How, _Key, _Alike], ...] = (
        (
            "synonym",
            lambda token: "" if token.norm in lexicon.groups else None,
            lambda a, b: lexicon.are_synonyms(a.norm, b.norm),
        ),
        (
            "sense",
            lambda token: "" if token.norm in lexicon.loose else None,
            lambda a, b: lexicon.may_be_synonyms(a.norm, b.norm),
        ),
        (
            "typo",
            lambda token: token.surface[:1].casefold(),
            lambda a, b: is_typo(a, b, lexicon, knows_word),
        ),
        ("derived", lambda token: token.norm[:1], lambda a, b: is_derived(a, b, lexicon)),
    )
    for how, key, alike in likenesses:
        pairs += _matched(one.tokens, other.tokens, pairs, how, key, alike)
        if how == "synonym":
            used = {p.one for p in pairs}, {p.other for p in pairs}
            pairs += [
                Pair(i, j, "synonym")
                for i, j in converted(one, other)
                if i not in used[0] and j not in used[1]
            ]
            pairs += _joined(one.tokens, other.tokens, pairs)
            pairs += _turned(_joined(other.tokens, one.tokens, _turned(pairs)))
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
        order_of(one, other, pairs),
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


def _aligned(one: Sequence[Token], other: Sequence[Token]) -> list[Pair]:
    """Pair equal tokens, those in like order first."""
    a, b = [(t.kind, t.norm) for t in one], [(t.kind, t.norm) for t in other]
    pairs = [
        Pair(block.a + k, block.b + k, "same")
        for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        for k in range(block.size)
    ]
    return pairs + _matched(
        one,
        other,
        pairs,
        "same",
        lambda token: token.norm,
        lambda x, y: x.kind == y.kind and x.norm == y.norm,
    )


_Key = Callable[[Token], str | None]
_Alike = Callable[[Token, Token], bool]


def _matched(
    one: Sequence[Token],
    other: Sequence[Token],
    pairs: Iterable[Pair],
    how: How,
    key: _Key,
    alike: _Alike,
) -> list[Pair]:
    """Pair each token with the first that is alike; only tokens with equal keys can be."""
    used_one, used_other = {p.one for p in pairs}, {p.other for p in pairs}
    places: dict[str | None, list[int]] = {}
    for j, candidate in enumerate(other):
        if j not in used_other and (how == "same" or candidate.kind == "word"):
            places.setdefault(key(candidate), []).append(j)
    places.pop(None, None)
    found = []
    for i, token in enumerate(one):
        if i in used_one or (how != "same" and token.kind != "word"):
            continue
        for j in places.get(key(token), ()):
            if j not in used_other and alike(token, other[j]):
                used_other.add(j)
                found.append(Pair(i, j, how))
                break
    return found


def _joined(one: Sequence[Token], other: Sequence[Token], pairs: Iterable[Pair]) -> list[Pair]:
    """Pair one word of ``one`` with two neighbours of ``other`` that spell it ("log in", "login").

    The second neighbour is paired with the same word.
    """
    used_one, used_other = {p.one for p in pairs}, {p.other for p in pairs}
    places: dict[str, list[int]] = {}
    for j, (left, right) in enumerate(pairwise(other)):
        spelt = left.surface.casefold() + right.surface.casefold()
        places.setdefault(spelt, []).append(j)
    found = []
    for i, token in enumerate(one):
        if i in used_one or token.kind != "word":
            continue
        for j in places.get(token.surface.casefold(), ()):
            if {j, j + 1}.isdisjoint(used_other):
                used_other |= {j, j + 1}
                found += [Pair(i, j, "joined"), Pair(i, j + 1, "joined")]
                break
    return found


def _turned(pairs: Iterable[Pair]) -> list[Pair]:
    return [Pair(pair.other, pair.one, pair.how) for pair in pairs]


def _left(tokens: Sequence[Token], used: set[int]) -> tuple[Token, ...]:
    return tuple(t for i, t in enumerate(tokens) if i not in used and t.kind != "link")


def _free(marks: frozenset[str], free: set[str]) -> frozenset[str]:
    """Keep single letters only where that very letter has no counterpart."""
    return frozenset(
        mark for mark in marks if mark in free or (len(mark) > 1 and not mark.isascii())
    )
