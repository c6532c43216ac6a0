"""Guards over what two texts are written with: language, quotes, code, signs, capitals. Pure."""

import re
from collections import Counter
from dataclasses import replace

from semantic_layer.analysis import Analysis, Token
from semantic_layer.edits import Comparison
from semantic_layer.finding import Finding, addition, difference
from semantic_layer.resources import load_lines
from semantic_layer.script import fold, normalise

_SIGNS = re.compile(
    r"(?<![\w?？！])!(?=[A-Za-z])"  # !x
    r"|[=<>&|~^*+\\!]*[=<>|~^*+\\][=<>&|~^*+\\!]*|&&+"  # = != -> || && ^
    r"|[:;][()]"  # :)
    r"|(?<=\b[A-Za-z])[.,-](?=[A-Za-z]\b)"  # a.b
)
_UNIT_LETTERS = 2  # MB, mW, Co


def language(c: Comparison) -> Finding | None:
    """The two are written in different languages."""
    if c.one.language == c.other.language:
        return None
    return difference(c, [c.one.language], [c.other.language])


def payload(c: Comparison) -> Finding | None:
    """Code, URLs, addresses or quoted texts differ."""
    if c.one.codes != c.other.codes:
        return difference(c, c.one.codes, c.other.codes)
    only = [_missing(here, there.text) for here, there in ((c.one, c.other), (c.other, c.one))]
    missing = only[0] + only[1]
    if not missing or _is_respelt(missing, c):
        return None
    words = {token.norm for token in (*c.only_one, *c.only_other) if _stands_in(token, missing)}
    found = addition(c, words, f"quoted only once: {missing[0][:60]!r}")
    return replace(found, exchanged=bool(only[0] and only[1]))


def _missing(here: Analysis, text: str) -> list[str]:
    return [quote for quote in here.quotes if quote not in fold(text)]


def _stands_in(token: Token, quotes: list[str]) -> bool:
    return any(token.surface.casefold() in quote for quote in quotes)


def signs(c: Comparison) -> Finding | None:
    """Operators or other signs differ."""
    one, other = (Counter(_SIGNS.findall(_plain(side.text))) for side in (c.one, c.other))
    if one == other:
        return None
    return difference(c, set(one - other), set(other - one))


def capitals(c: Comparison) -> Finding | None:
    """A word differs by capitals that make it another word (MB, Mb; Polish, polish; -l, -L)."""
    cased = _is_cased(c.one.text) and _is_cased(c.other.text)
    for pair in c.pairs:
        a, b = c.one.tokens[pair.one].surface, c.other.tokens[pair.other].surface
        if a == b or a.casefold() != b.casefold() or _begins(c.one.text, a, c.other.text, b):
            continue
        if len(a) == 1 and a.casefold() not in {"a", "i"}:
            return difference(c, [a], [b])
        if cased and (_are_units(a, b) or a.casefold() in load_lines("homographs.en.txt")):
            return difference(c, [a], [b])
    return None


def whose(c: Comparison) -> Finding | None:
    """One asks whose, or whom of, and the other doesn't."""
    one, other = (_asks_whose(side.text) for side in (c.one, c.other))
    return None if one == other else addition(c, (), "whose, on one side only")


def _asks_whose(text: str) -> bool:
    plain = text.casefold().rstrip(" ?.!？。")
    return "谁的" in plain or bool(re.search(r"\bwhose\b|\bof$", plain))


def _begins(one: str, first: str, other: str, second: str) -> bool:
    """Say whether either word begins its text, where a capital tells nothing."""
    return one.lstrip().startswith(first) or other.lstrip().startswith(second)


def _is_cased(text: str) -> bool:
    """Say whether a text is typed with capitals and small letters."""
    return any(char.isupper() for char in text) and any(char.islower() for char in text)


def _are_units(a: str, b: str) -> bool:
    """Say whether two short words both have capitals of their own (MB, Mb); "iq" is just IQ."""
    return len(a) <= _UNIT_LETTERS and not (a.islower() or b.islower())


def _plain(text: str) -> str:
    return _DRAWL.sub("", normalise(text).replace("**", ""))


_DRAWL = re.compile(r"~+(?![A-Za-z\d])")


def _is_respelt(missing: list[str], c: Comparison) -> bool:
    """Say whether the words of the missing quotes have counterparts all the same."""
    left = {t.surface.casefold() for t in (*c.only_one, *c.only_other)}
    if "zh" in {c.one.language, c.other.language}:
        return not any(sign in quote for sign in left for quote in missing)
    return all(left.isdisjoint(quote.split()) for quote in missing)
