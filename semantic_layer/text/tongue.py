"""Which language a text is in, by its script and its commonest words. Pure.

Finer than `script.language_of`, which only tells by whose rules a text is read.
"""

import re
from collections import Counter
from functools import cache, lru_cache

from semantic_layer.resources import load_lines
from semantic_layer.text.script import normalise, take_payloads

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("cyrillic", re.compile(r"[\u0400-\u04ff]")),
    ("greek", re.compile(r"[\u0370-\u03ff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff]")),
    ("hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("devanagari", re.compile(r"[\u0900-\u097f]")),
    ("thai", re.compile(r"[\u0e00-\u0e7f]")),
)
_LEAST_SCRIPT = 3  # letters; fewer are a name or a unit
_WORD = re.compile(r"[^\W\d_]+'?")
_LATIN = re.compile(r"[a-z\u00c0-\u024f]")
_LEAST_WORDS = 2


@lru_cache(maxsize=4096)
def tongue_of(text: str) -> str:
    """Return the language of a text (or its script), "" where too little tells it."""
    plain = take_payloads(normalise(text)).rest.casefold()
    num_latin = 0 if plain.isascii() else len(_LATIN.findall(plain))
    for name, letters in () if plain.isascii() else _SCRIPTS:
        if len(letters.findall(plain)) >= max(_LEAST_SCRIPT, num_latin / 2):
            return name
    return _by_words(_WORD.findall(plain))


def _by_words(words: list[str]) -> str:
    """Return the language that most words are common in, if no other has as many."""
    languages = _languages()
    hits = Counter(
        name
        for word in words
        for name in languages.get(word) or languages.get(word.rstrip("'"), ())
    )
    ranked = hits.most_common(2)
    if not ranked or ranked[0][1] < _LEAST_WORDS:
        return ""
    name, most = ranked[0]
    is_tied = len(ranked) > 1 and ranked[1][1] == most
    return "" if is_tied or (name != "en" and most < 2 * hits["en"]) else name


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in load_lines("common_words.txt"):
        name, _, words = line.partition(":")
        for word in words.split():
            found[word] = (*found.get(word, ()), name.strip())
    return found
