"""Guards over what is measured and of which model: to or by, how long or wide, 14 or 14 Pro. Pure.

Knows the words of English and Chinese that say so, and looks at no others.
"""

import re
from collections import defaultdict
from collections.abc import Mapping

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, addition, difference
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.lexicon import english
from semantic_layer.text.script import plain_of
from semantic_layer.text.stemming import stem

_ZH_CHANGE = re.compile(
    r"(?:增加|增长|提高|提升|上升|上涨|减少|降低|下降|下跌|[涨升降跌减增])"
    r"(到了?|至|了?)(?=[\d一二两三四五六七八九十百])"
)
_VERBS = (
    r"(?:ris(?:e|es|en|ing)|rose|increas(?:e|es|ed|ing)|grow(?:s|n|ing)?|grew|rais(?:e|es|ed|ing)"
    r"|fall(?:s|en|ing)?|fell|drop(?:s|ped|ping)?|declin(?:e|es|ed|ing)|decreas(?:e|es|ed|ing)"
    r"|reduc(?:e|es|ed|ing)|climb(?:s|ed|ing)?|shr[aiu]nk(?:s|ing)?)"
)
_EN_CHANGE = re.compile(rf"\b{_VERBS}\b(?: (?!to\b|by\b)[a-z]+){{0,3}}? (to |by |)(?=[$£€]?\d)")


def change(c: Comparison) -> Finding | None:
    """An amount grew or fell to a number in one text, by that number in the other."""
    one, other = _changed(c.one), _changed(c.other)
    if len(one) != 1 or len(other) != 1 or one == other:
        return None
    return difference(c, one, other)


def _changed(side: Analysis) -> frozenset[str]:
    plain = plain_of(side.text)
    if side.language == "zh":
        ends = {"到", "到了", "至"}
        return frozenset("to" if how in ends else "by" for how in _ZH_CHANGE.findall(plain))
    return frozenset(how.strip() or "by" for how in _EN_CHANGE.findall(plain))


_EXTENTS = {
    "length": re.compile(r"多长(?!时间|久)|长度|全长|[米里]长(?!度)|\blength of\b"),
    "width": re.compile(r"多宽|宽度|[米里]宽|\bhow wide\b|\bwidth\b"),
    "height": re.compile(r"多高|高度|海拔|米高|\bhow (?:tall|high)\b|\bheight\b"),
    "depth": re.compile(r"多深|深度|米深|\bhow deep\b|\bdepth\b"),
    "weight": re.compile(r"多重(?!要)|重量|\bhow heavy\b|\bhow much does .* weigh\b"),
}


def extent(c: Comparison) -> Finding | None:
    """How long something is, is asked in one text, how wide in the other."""
    one, other = _extents(c.one), _extents(c.other)
    return difference(c, one, other) if one and other and one.isdisjoint(other) else None


def _extents(side: Analysis) -> frozenset[str]:
    plain = plain_of(side.text)
    return frozenset(name for name, pattern in _EXTENTS.items() if pattern.search(plain))


_CAPITAL = re.compile(r"首都|首府|省会|\bcapital\b")
_FOREMOST = re.compile(
    r"最[^的]{1,6}的?[^的]{0,3}城市|\b(?:largest|biggest|richest|oldest|most \w+) (?:\w+ )?city\b"
)


def seat(c: Comparison) -> Finding | None:
    """The capital is asked for in one text, the largest or richest city in the other."""
    one, other = _seat(c.one), _seat(c.other)
    return difference(c, {one}, {other}) if one and other and one != other else None


def _seat(side: Analysis) -> str:
    plain = plain_of(side.text)
    if _CAPITAL.search(plain):
        return "" if _FOREMOST.search(plain) else "capital"
    return "foremost city" if _FOREMOST.search(plain) else ""


_MODEL = re.compile(
    r"(?<![a-z0-9])([a-z]++|[\u4e00-\u9fff])[ -]?(\d+(?:\.\d+)?)"
    r"((?:[ -]?(?:pro|max|plus|mini|ultra|lite|ti|super|ltsc|turbo|xt)(?![a-z]))+"
    r"|[sotx](?![a-z\d]))?"
    r"(?! ?(?:秒|sec))"
)


def model(c: Comparison) -> Finding | None:
    """A model of a number is another with a suffix ("RTX 4060", "RTX 4060 Ti")."""
    if "other" in {c.one.language, c.other.language}:
        return None
    one, other = _models(c.one), _models(c.other)
    for number in one.keys() & other.keys():
        if one[number] != other[number]:
            here, there = one[number] - other[number], other[number] - one[number]
            return difference(c, here, there, exchanged=True)
    return None


def _models(side: Analysis) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, number, suffix in _MODEL.findall(plain_of(side.text)):
        found[f"{name} {number}"].add(re.sub(r"[ -]", "", suffix))
    return found


def term(c: Comparison) -> Finding | None:
    """Each of two Chinese texts has a Latin word of its own ("HTTP", "HTTPS")."""
    if c.one.language != "zh":
        return None
    derived = [p for p in c.pairs if p.how == "derived"]
    one = {t.norm for t in (*c.only_one, *(c.one.tokens[p.one] for p in derived))}
    other = {t.norm for t in (*c.only_other, *(c.other.tokens[p.other] for p in derived))}
    here, there = set(filter(_is_latin, one)), set(filter(_is_latin, other))
    if not here or not there or _are_one(here, there):
        return None
    return difference(c, here, there)


def _is_latin(word: str) -> bool:
    return word.isascii() and word[0].isalpha() and len(word) > 1  # B站 is bilibili


def _are_one(here: set[str], there: set[str]) -> bool:
    """Say whether two words mean the same in English, or spell the same together."""
    alike = any(english().are_synonyms(stem(a), stem(b)) for a in here for b in there)
    return alike or sorted("".join(here)) == sorted("".join(there))


_EXAMPLE = re.compile(r"举[一个几些出]{0,2}例|举.{0,3}例子")


def example(c: Comparison) -> Finding | None:
    """One Chinese text asks for an example besides."""
    one, other = (bool(_EXAMPLE.search(plain_of(side.text))) for side in (c.one, c.other))
    return None if one == other else addition(c, set("举一个几例子"), "an example, once only")
