"""Guards over small English words that turn a question into another one. Pure.

They hold for texts that rules would else call the same: "strong", "too strong"; "what is a joke",
"tell me a joke"; "json.load", "json.loads"; "What is Python?", "What is a python?".
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, addition, difference
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.script import normalise
from semantic_layer.text.stemming import stem

_DEGREE = re.compile(
    r"\b(?:too (?=[a-z])(?!please\b|can\b|is\b|are\b|do\b|does\b)|always\b|(?<=which )other\b"
    r"|(?<=what )other\b)"
)


def degree(c: Comparison) -> Finding | None:
    """Only one text asks beyond measure, without exception or besides ("too hot", "always")."""
    if c.one.language != "en":
        return None
    one, other = (_DEGREE.search(_plain(side)) for side in (c.one, c.other))
    if (one is None) == (other is None):
        return None
    word = (one or other)[0].strip()  # type: ignore[index]  # one of them is there
    return addition(c, {word}, f"{word} on one side only")


_TOLD = re.compile(
    r"(?:please |can you |could you )*(?:(?:tell|give|show|write|sing|read|send)(?: me| us)? "
    r"(?:an?|another|one|some) (?P<thing>[a-z-]+(?: [a-z-]+)?)|show (?:me |us )?(?:some )?code\b)"
)
_EXPLAINED = re.compile(r"(?:what(?:'s| is| are)|define|explain|describe) (?:an? |what )?")
_GOING_ON = re.compile(r"\b(?:for|of|to|that|which|about|between|with)\b")
_ACCOUNT = re.compile(
    r"(?:quick |short |brief |simple |clear |detailed |little |general |basic )*(?:bit|idea"
    r"|overview|explanation|definition|summary|rundown|description|introduction|intro|few|list|information"
    r"|details?|facts?)(?= (?:of|about|on|to|for)\b|$)"
)
_EXAMPLE = re.compile(r"\b(?:examples?|samples?|snippets?)\b")


def specimen(c: Comparison) -> Finding | None:
    """One text wants a thing of a kind, the other to be told what that kind is."""
    if c.one.language != "en":
        return None
    one, other = (_plain(side) for side in (c.one, c.other))
    for asks, tells in ((one, other), (other, one)):
        told, explained = _TOLD.match(asks), _EXPLAINED.match(tells)
        if told is None or explained is None or _EXAMPLE.search(tells):
            continue
        thing = told["thing"] or ""
        is_other = not thing or _EXAMPLE.search(asks)
        if is_other or not (_ACCOUNT.match(thing) or _GOING_ON.search(asks)):
            return difference(c, [told[0]], [explained[0].strip()])
    return None


_IDENTIFIER = re.compile(r"\b[A-Za-z]\w++(?:\.[A-Za-z]\w++)+|\b[A-Za-z]++(?:_[A-Za-z0-9]++)+")


def identifier(c: Comparison) -> Finding | None:
    """Each text names its own dotted or underscored word, as code does; any letter counts."""
    one, other = (frozenset(_IDENTIFIER.findall(side.text)) for side in (c.one, c.other))
    here, there = ({word.casefold() for word in words} for words in (one, other))
    if not (here - there and there - here):
        return None
    return difference(c, here - there, there - here)


_SUBJECT = re.compile(r"(?i:what|who)(?:'s| is| are) (?:(?i:(an?|the)) )?(\w+)\W*")


def named(c: Comparison) -> Finding | None:
    """A name alone here is one of a kind there ("What is Python?", "What is a python?")."""
    one, other = (_SUBJECT.fullmatch(normalise(side.text).strip()) for side in (c.one, c.other))
    if one is None or other is None or (one[1] is None) == (other[1] is None):
        return None
    bare, kind = (one, other) if one[1] is None else (other, one)
    is_name = bare[2][:1].isupper() and not bare[2].isupper()
    if not is_name or bare[2].casefold() != kind[2].casefold():
        return None
    return difference(c, [one[0].strip()], [other[0].strip()])


_SUFFERED = re.compile(r"\b(?:get|gets|getting|got|be|being|become) (\w+(?:ed|en|id|de|ught|ld))\b")


def suffered(c: Comparison) -> Finding | None:
    """What one does in one text is done to one in the other ("hire", "get hired as")."""
    if c.one.language != "en" or c.one.frame != c.other.frame or c.order != "same":
        return None
    one, other = (set(map(stem, _SUFFERED.findall(_plain(side)))) for side in (c.one, c.other))
    same = {c.one.tokens[pair.one].norm for pair in c.pairs}
    turned = (one ^ other) & same
    is_active = all(_ACTIVE.search(_plain(side)) for side in (c.one, c.other))
    return difference(c, one, other) if turned and is_active else None


_ACTIVE = re.compile(r"\b(?:i|you|we|to|one|someone|people)\b")
_KNOWN = re.compile(
    r"\b(?:know|tell|check|see|find out) (?:if|whether|when|that) (?:someone|somebody|anyone"
    r"|anybody|a person|people|they|he|she)\b"
)


def known(c: Comparison) -> Finding | None:
    """How to do it to others is not how to know that they do it."""
    if c.one.language != "en":
        return None
    one, other = (_KNOWN.search(_plain(side)) for side in (c.one, c.other))
    if (one is None) == (other is None) or not all(
        re.match(r"how (?:do|can|could|would|should|to)\b", _plain(side))
        for side in (c.one, c.other)
    ):
        return None
    clause = (one or other)[0]  # type: ignore[index]  # one of them is there
    return addition(c, clause.split(), f"{clause} on one side only")


def _plain(side: Analysis) -> str:
    return normalise(side.text).casefold().strip()
