"""What Chinese questions ask of one thing: what it is or is for, how many of it or which the most.

Pure.
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, addition, difference
from semantic_layer.text.chinese import unified
from semantic_layer.text.script import normalise, simplified

_PURPOSE = re.compile(r"什么(?:用|作用|用处|用途|功能)(?![的在于])")
_NATURE = re.compile(r"什么(?:叫|是)|.*什么意思|.*是什么(?:意思|东西)?$")
_MOST = re.compile(r"最(?=[\u4e00-\u9fff])(?![近新后终初少多低高早快])")


def facet(c: Comparison) -> Finding | None:
    """One asks what a thing is, the other what it is for."""
    one, other = _facet(c.one.text), _facet(c.other.text)
    return difference(c, {one}, {other}) if one and other and one != other else None


def superlative(c: Comparison) -> Finding | None:
    """Whether something is the most, or just is."""
    is_most = [bool(_MOST.search(unified(side.text))) for side in (c.one, c.other)]
    if is_most[0] == is_most[1] or not c.one.frame == c.other.frame == "yesno":
        return None
    return addition(c, {"最"}, "最 on one side only")


def count(c: Comparison) -> Finding | None:
    """One asks how many there are, the other which of them is the most."""
    if c.one.language != "zh":
        return None
    one, other = _counted(c.one.text), _counted(c.other.text)
    return difference(c, {one}, {other}) if one and other and one != other else None


def _counted(text: str) -> str:
    plain = simplified(normalise(text))
    is_most = bool(_RANKED.search(plain))
    if _COUNT.search(plain):
        return "" if is_most else "count"
    return "most" if is_most and _THING.search(plain) else ""


_COUNT = re.compile(r"多少(?!钱)|几[天个位名只条座种颗张本件家所门支部台辆棵块片]")
_RANKED = re.compile(r"最(?![近新后终初]|好(?!的)|多(?:能|可以|有))")
_THING = re.compile(r"[哪谁]|什么|啥")


def coding_language(c: Comparison) -> Finding | None:
    """What is to be written in C, R or D is to be in another language."""
    if c.one.language != "zh":
        return None
    texts = [simplified(side.text.casefold()) for side in (c.one, c.other)]
    one, other = (set(_LATIN.findall(text)) for text in texts)
    lone, others = one - other, other - one
    named = {letter for text in texts for letter in _LETTER.findall(text)} & (lone | others)
    return difference(c, lone, others) if named and lone and others else None


_LATIN = re.compile(r"[a-z]+(?:\+\+|#)?")
_LETTER = re.compile(
    r"(?:(?<=[用在])|(?<=用 ))[crd](?![a-z+#])"
    r"|(?<![a-z])[crd](?= ?(?:语言|程序|代码|写|实现|怎么|如何|[里中]))"
)


def _facet(text: str) -> str:
    plain = unified(text).rstrip(" ?？。!！")
    if _PURPOSE.search(plain):
        return "purpose"
    return "nature" if _NATURE.match(plain) else ""
