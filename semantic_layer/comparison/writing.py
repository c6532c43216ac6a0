"""Guards over what two texts are written with: language, quotes, code, signs, capitals. Pure."""

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, addition, difference
from semantic_layer.resources import load_lines
from semantic_layer.text.analysis import Analysis, Token
from semantic_layer.text.chinese import unified
from semantic_layer.text.formulas import formulas
from semantic_layer.text.script import fold, normalise
from semantic_layer.text.tongue import tongue_of

_SIGNS = re.compile(
    r"(?<![\w?？！])!(?=[A-Za-z])"  # !x
    r"|[=<>&|~^*+\\!]*[=<>|~^*+\\][=<>&|~^*+\\!]*|&&+"  # = != -> || && ^
    r"|[:;][()]"  # :)
    r"|(?<=\b[A-Za-z])[.,-](?=[A-Za-z]\b)"  # a.b
    r"|(?<=\b[A-Za-z])''(?=[A-Za-z])"  # f''x
)
_NO_TEXT = "''"  # an empty string, of which tokens show nothing
_UNIT_LETTERS = 2  # MB, mW, Co


def language(c: Comparison) -> Finding | None:
    """The two are written in different languages."""
    if c.one.language != c.other.language:
        return difference(c, [c.one.language], [c.other.language])
    if c.one.language == "zh" or c.coverage == 1.0:
        return None
    one, other = tongue_of(c.one.text), tongue_of(c.other.text)
    return difference(c, [one], [other]) if one and other and one != other else None


def payload(c: Comparison) -> Finding | None:
    """Code, URLs, addresses or quoted texts differ."""
    if c.one.codes != c.other.codes:
        return difference(c, c.one.codes, c.other.codes)
    only = [_missing(here, there.text) for here, there in ((c.one, c.other), (c.other, c.one))]
    missing = only[0] + only[1]
    if not missing or (_is_respelt(missing, c) and not _is_of_a_word(c)):
        return None
    words = {token.norm for token in (*c.only_one, *c.only_other) if _stands_in(token, missing)}
    found = addition(c, words, f"quoted only once: {missing[0][:60]!r}")
    return replace(found, exchanged=bool(only[0] and only[1]))


def _is_of_a_word(c: Comparison) -> bool:
    """Say whether both ask of one quoted word, which has no other form then ("led", "lead")."""
    quotes = (c.one.quotes, c.other.quotes)
    is_one = all(len(found) == 1 and found[0].isalpha() for found in quotes)
    return is_one and all(_OF_A_WORD.search(side.text.casefold()) for side in (c.one, c.other))


_OF_A_WORD = re.compile(r"\b(?:word|mean(?:s|ing)?|defin\w+|translat\w+)\b")


def _missing(here: Analysis, text: str) -> list[str]:
    return [quote for quote in here.quotes if quote not in fold(text)]


def _stands_in(token: Token, quotes: list[str]) -> bool:
    return any(token.surface.casefold() in quote for quote in quotes)


def signs(c: Comparison) -> Finding | None:
    """Operators or other signs differ."""
    one, other = _signs_of(c.one.text), _signs_of(c.other.text)
    if one != other:
        found = difference(c, set(one - other), set(other - one))
        return replace(found, is_firm=_NO_TEXT in (one - other) + (other - one))
    one, other = (Counter(formulas(side.text)) for side in (c.one, c.other))
    left, right = one - other, other - one
    is_added = bool(left) != bool(right)
    is_else = any(token.norm[0].isalpha() for token in (*c.only_one, *c.only_other))
    if not (left or right) or (is_added and is_else):
        return None
    return difference(c, set(left), set(right))


@lru_cache(maxsize=4096)
def _signs_of(text: str) -> Counter[str]:
    """Count the operators and other signs of a text; not to be changed."""
    return Counter(_SIGNS.findall(_plain(text)))


def is_signed_alike(c: Comparison) -> bool:
    """Say whether both have the same formulas and signs."""
    return formulas(c.one.text) == formulas(c.other.text)


def capitals(c: Comparison) -> Finding | None:
    """A word differs by capitals that make it another word (MB, Mb; Polish, polish; -l, -L)."""
    cased = _is_cased(c.one.text) and _is_cased(c.other.text)
    shouted = _shouted(c.one.text, c.other.text) or _shouted(c.other.text, c.one.text)
    if shouted and cased:
        return difference(c, [shouted], [shouted.casefold()])
    one, other = _identifiers(c.one.text), _identifiers(c.other.text)
    turned = {name.casefold() for name in one - other} & {n.casefold() for n in other - one}
    if turned:
        return difference(c, set(one - other), set(other - one))
    for pair in c.pairs:
        a, b = c.one.tokens[pair.one].surface, c.other.tokens[pair.other].surface
        if a == b or a.casefold() != b.casefold() or _begins(c.one.text, a, c.other.text, b):
            continue
        if len(a) == 1 and a.casefold() not in {"a", "i"}:
            return difference(c, [a], [b])
        if cased and (_are_units(a, b) or _is_other_word(a.casefold(), c)):
            return difference(c, [a], [b])
    return None


def _identifiers(text: str) -> Counter[str]:
    """Count the names that code gives to something, whose capitals count."""
    if not _MAY_NAME.search(text):
        return Counter()
    return Counter(one or other for one, other in _IDENTIFIER.findall(text))


_MAY_NAME = re.compile(r"[=(\[]|\+\+|::|->|variable|function|constant|identifier|变量|函数|常量")


_IDENTIFIER = re.compile(
    r"(?:\b(?:variables?|functions?|constants?|identifiers?)|变量|函数|常量)\s*[`'\"]?([A-Za-z_]\w+)"
    r"|\b([A-Za-z_]\w+)(?=\s*=|\(|\[|\.[A-Za-z]+\(|\+\+|::|->)"
)


def _is_other_word(word: str, c: Comparison) -> bool:
    """Say whether a word is another with a capital; some only where a place is asked about."""
    if word in load_lines("homographs.en.txt"):
        return True
    of_place = c.one.frame == "where" or _OF_PLACE.search(c.one.text.casefold())
    return word in _PLACES and bool(of_place)


_PLACES = frozenset({"java", "chad", "georgia", "jordan", "bath", "cork", "phoenix"})
_OF_PLACE = re.compile(r"\b(?:big|large|population|people|live|island|capital|visit|travel|fly)\b")


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
    if text.isascii():
        return text not in {text.lower(), text.upper()}
    return any(char.isupper() for char in text) and any(char.islower() for char in text)


def _shouted(one: str, other: str) -> str:
    """Return a word in capitals that is only a pronoun in the other text ("IT", "it")."""
    if not any(word in one for word in _MEANT):
        return ""
    words, others = (set(_LETTERS.findall(text)) for text in (one, other))
    small = {word.casefold() for word in others}
    return next(
        (word for word in _MEANT & words if word not in others and word.lower() in small), ""
    )


_LETTERS = re.compile(r"[A-Za-z]+")
_MEANT = frozenset({"IT", "US", "WHO"})


def _are_units(a: str, b: str) -> bool:
    """Say whether two short words both have capitals of their own (MB, Mb); "iq" is just IQ."""
    if {a, b} == {"mg", "Mg"}:
        return True
    return len(a) <= _UNIT_LETTERS and not (a.islower() or b.islower())


def _plain(text: str) -> str:
    return _DRAWL.sub("", normalise(text).replace("**", ""))


_DRAWL = re.compile(r"~+(?![A-Za-z\d])")


def _is_respelt(missing: list[str], c: Comparison) -> bool:
    """Say whether the words of the missing quotes have counterparts all the same."""
    left = {t.surface.casefold() for t in (*c.only_one, *c.only_other)}
    if "zh" in {c.one.language, c.other.language}:
        texts = unified(fold(f"{c.one.text} {c.other.text}"))
        is_word = any(len(quote) == 1 or unified(quote) not in texts for quote in missing)
        return not is_word and not any(sign in quote for sign in left for quote in missing)
    return all(left.isdisjoint(quote.split()) for quote in missing)
