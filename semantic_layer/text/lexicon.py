"""Words of one language as the comparison needs them: classes, synonyms, opposites, sets. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from semantic_layer.resources import load_lines
from semantic_layer.text.stemming import stem

Phrase = tuple[str, ...]
_LOOSE = "~"  # begins a line of words with one meaning in common


@dataclass(frozen=True, slots=True)
class Exclusive:
    """A set of which a question is about one member; ``strict`` ones may not be added either."""

    name: str
    strict: bool


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Look-ups by normal form (stems in English, words in Chinese).

    ``groups`` are of words with one meaning, ``loose`` of those that share one of several.
    ``phrases`` maps the first word of a multi-word entry to its continuations, longest first;
    ``places`` every name of a place to the one it is read as, in normal form and as written.
    """

    classes: dict[str, frozenset[str]]
    groups: dict[str, frozenset[int]]
    loose: dict[str, frozenset[int]]
    opposites: dict[str, frozenset[str]]
    sets: dict[str, tuple[Exclusive, ...]]
    phrases: dict[str, tuple[Phrase, ...]]
    places: dict[str, tuple[str, str]]
    contractions: dict[str, Phrase]

    def are_synonyms(self, one: str, other: str) -> bool:
        """Say whether both stand in one group."""
        return bool(self.groups.get(one, frozenset()) & self.groups.get(other, frozenset()))

    def may_be_synonyms(self, one: str, other: str) -> bool:
        """Say whether both have a meaning in common, besides others ("order", "request")."""
        return bool(self.loose.get(one, frozenset()) & self.loose.get(other, frozenset()))

    def are_opposites(self, one: str, other: str) -> bool:
        """Say whether exchanging one for the other turns a question round."""
        return other in self.opposites.get(one, frozenset())

    def knows(self, word: str) -> bool:
        """Say whether this very word stands in a group or a set."""
        return word in self.groups or word in self.loose or word in self.sets

    def shared_set(self, one: str, other: str) -> Exclusive | None:
        """Return a set that holds both words, or None."""
        others = self.sets.get(other, ())
        return next((found for found in self.sets.get(one, ()) if found in others), None)


@cache
def english() -> Lexicon:
    """Load the English lexicon."""
    phrases: set[Phrase] = set()

    def normal(entry: str) -> str:
        words = tuple(entry.casefold().replace("'s", "").replace("-", " ").split())
        if len(words) <= 1:
            return stem(words[0]) if words else entry
        phrases.add(words)
        return " ".join(words)

    lines = load_lines("synonyms.en.txt")
    places = load_lines("places.en.txt")
    groups = _groups([*(line for line in lines if line[0] != _LOOSE), *places], normal)
    loose = _groups((line[1:] for line in lines if line[0] == _LOOSE), normal)
    antonyms = (*load_lines("antonyms.en.txt"), *load_lines("antonyms.wordnet.en.txt"))
    opposites = _opposites(antonyms, normal, groups)
    names = _place_names(places, normal)
    sets = _with_places(
        _sets(load_lines("sets.en.txt"), normal), {name for name, _ in names.values()}
    )
    sets = _named_otherwise(sets, groups)
    return Lexicon(
        classes=_classes(load_lines("words.en.txt")),
        groups=groups,
        loose=loose,
        opposites=opposites,
        sets=sets,
        phrases=_by_first_word(phrases),
        places=names,
        contractions={
            name.strip(): tuple(words.split())
            for name, _, words in (
                line.partition(":") for line in load_lines("contractions.en.txt")
            )
        },
    )


@cache
def chinese() -> Lexicon:
    """Load the Chinese lexicon; its words are strings of characters."""
    places = load_lines("places.zh.txt")
    groups = _groups([*load_lines("synonyms.zh.txt"), *places], str.strip)
    names = _place_names(places, str.strip)
    sets = _with_places(
        _sets(load_lines("sets.zh.txt"), str.strip), {name for name, _ in names.values()}
    )
    return Lexicon(
        classes=_classes(load_lines("words.zh.txt")),
        groups=groups,
        loose={},
        opposites=_opposites(load_lines("antonyms.zh.txt"), str.strip, groups),
        sets=_named_otherwise(sets, groups),
        phrases={},
        places=names,
        contractions={},
    )


def _classes(lines: Iterable[str]) -> dict[str, frozenset[str]]:
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): frozenset(words.split()) for name, _, words in pairs}


def _groups(lines: Iterable[str], normal: Callable[[str], str]) -> dict[str, frozenset[int]]:
    groups: dict[str, frozenset[int]] = {}
    for number, line in enumerate(lines):
        for member in line.split("|"):
            key = normal(member.strip())
            groups[key] = groups.get(key, frozenset()) | {number}
    return groups


def _opposites(
    lines: Iterable[str], normal: Callable[[str], str], groups: dict[str, frozenset[int]]
) -> dict[str, frozenset[str]]:
    """Map each word, and each synonym of it, to its opposites and their synonyms."""
    members: dict[int, set[str]] = {}
    for word, numbers in groups.items():
        for number in numbers:
            members.setdefault(number, set()).add(word)

    def alike(side: str) -> set[str]:
        words = {normal(word.strip()) for word in side.split(",")}
        return words.union(*(members[n] for w in words for n in groups.get(w, ())))

    opposites: dict[str, frozenset[str]] = {}
    for line in lines:
        sides = [alike(side) for side in line.split("|")]
        for here, there in (sides, sides[::-1]):
            for word in here:
                opposites[word] = opposites.get(word, frozenset()) | frozenset(there - here)
    return opposites


def _sets(lines: Iterable[str], normal: Callable[[str], str]) -> dict[str, tuple[Exclusive, ...]]:
    sets: dict[str, tuple[Exclusive, ...]] = {}
    for line in lines:
        name, _, members = line.partition(":")
        found = Exclusive(name.strip("! "), name.strip().endswith("!"))
        for member in members.split():
            key = normal(member)
            sets[key] = (*sets.get(key, ()), found)
    return sets


def _place_names(places: Iterable[str], normal: Callable[[str], str]) -> dict[str, tuple[str, str]]:
    """Map each name of a place to the first of its line, in normal form and as written."""
    lines = ([name.strip() for name in line.split("|")] for line in places)
    return {normal(name): (normal(names[0]), names[0]) for names in lines for name in names}


def _with_places(
    sets: dict[str, tuple[Exclusive, ...]], names: Iterable[str]
) -> dict[str, tuple[Exclusive, ...]]:
    """Add the set of all places, whose members stay in their other sets."""
    return sets | {name: (*sets.get(name, ()), _PLACE) for name in names}


_PLACE = Exclusive("place", strict=False)


@cache
def set_members(file: str, name: str) -> tuple[str, ...]:
    """Return the words of all sets of one name, as the file writes them."""
    lines = (line.partition(":") for line in load_lines(file))
    return tuple(
        word for of, _, members in lines if of.strip("! ") == name for word in members.split()
    )


def _named_otherwise(
    sets: dict[str, tuple[Exclusive, ...]], groups: dict[str, frozenset[int]]
) -> dict[str, tuple[Exclusive, ...]]:
    """Give each synonym of a member its sets."""
    of_group = {number: sets[word] for word in sets for number in groups.get(word, ())}
    found = {
        word: of_group[n] for word, numbers in groups.items() for n in numbers if n in of_group
    }
    return found | sets


def _by_first_word(phrases: Iterable[Phrase]) -> dict[str, tuple[Phrase, ...]]:
    found: dict[str, list[Phrase]] = {}
    for phrase in sorted(phrases, key=len, reverse=True):
        found.setdefault(phrase[0], []).append(phrase)
    return {first: tuple(rest) for first, rest in found.items()}
