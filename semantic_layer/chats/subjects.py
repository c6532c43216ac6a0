"""Whether a message names itself what it is about, or leaves that to what was said before. Pure.

"What is the capital of Peru?" does, "What is the local currency?" doesn't, whole sentences as both
are. A message names its subject only by a finding: what isn't known to be named costs a hit, never
an answer.
"""

import re
from functools import cache, lru_cache

from semantic_layer.chats.small_talk import WORD, words_of
from semantic_layer.resources import load_class
from semantic_layer.text.analysis import analyse
from semantic_layer.text.lexicon import set_members
from semantic_layer.text.script import language_of, normalise

_FILE = "subjects.txt"
_MOST_READ = 400  # signs
_PLACES = frozenset({"country", "city", "continent"})
_NAME = re.compile(r"[A-Z](?:'?[A-Za-z]*[a-z]|\d)")
_CLASS = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=16_384)
def names_subject(text: str) -> bool:
    """Say whether nothing said before can change what a message is about.

    A long one is not read: it brings its matter along.
    """
    if len(text) > _MOST_READ:
        return True
    plain = " ".join(normalise(text).split())
    if language_of(plain) == "zh":
        return _names_it_zh(plain.casefold().rstrip(" ?？。.!！"))
    if _has("how_to", plain.casefold()):
        return _has("how_where", plain)
    return _has("own", plain.casefold()) or _names_it(plain)


def _names_it(plain: str) -> bool:
    """Say whether a name or quoted text is spoken of, and no "the" thing beside."""
    if _has("points", _small_start(plain)):
        return False
    analysis = analyse(plain)
    if analysis.codes or analysis.quotes:
        return True
    return not _has("at_hand", _small_start(plain)) and _has_subject_name(plain)


def _names_it_zh(plain: str) -> bool:
    if _has("how_to_zh", plain):
        return _has("how_where_zh", plain)
    if _has("own_zh", plain) or _has("unique_zh", plain):
        return True
    return _has("place_zh", plain) and not _has("to_place_zh", plain)


def _has_subject_name(plain: str) -> bool:
    """Say whether a name is what is spoken of, not merely where to, whence or by what means."""
    names = _named(plain)
    if _has("between", plain.casefold()):
        return bool(names)
    return any(
        not _has("adjunct", plain[: place.start()].casefold())
        for name in names
        for place in re.finditer(rf"\b{re.escape(name)}\b", plain, re.IGNORECASE)
    )


def _named(plain: str) -> list[str]:
    """Return what is written as a name, and places however they are written; no acronyms."""
    words = WORD.findall(_small_start(plain))
    is_title = 2 * sum(word[0].isupper() for word in words) > len(words)
    capitals = [] if is_title else [word for word in words if _NAME.match(word)]
    no_names = words_of("deictic") | _known("language")
    named = [word for word in capitals if word.casefold() not in no_names]
    return [*named, *(word for word in words if word.casefold() in _known("country"))]


@cache
def _known(name: str) -> frozenset[str]:
    """Return the countries with their cities and continents, or the languages of people."""
    kinds = _PLACES if name == "country" else {name}
    return frozenset(word for kind in kinds for word in set_members("sets.en.txt", kind))


def has_name(word: str) -> bool:
    """Say whether a word is written as a name, and names neither a day nor a language."""
    no_names = words_of("deictic") | _known("language")
    return bool(_NAME.match(word)) and word.casefold() not in no_names


def _small_start(plain: str) -> str:
    """Write the first letter small, so that capitals are names."""
    return plain[:1].casefold() + plain[1:]


def _has(name: str, text: str) -> bool:
    return any(pattern.search(text) for pattern in _patterns(name))


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_CLASS.sub(_alternatives, line)) for line in load_class(_FILE, name))


def _alternatives(name: re.Match[str]) -> str:
    if name[1] == "country":
        return "|".join(sorted(_known("country")))
    return "|".join(_CLASS.sub(_alternatives, line) for line in load_class(_FILE, name[1]))
