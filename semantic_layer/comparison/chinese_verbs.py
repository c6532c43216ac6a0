"""Guards over what Chinese says of an act: not or not yet, must or may, what comes first. Pure."""

import re
from dataclasses import replace

from semantic_layer.comparison.chinese_order import A_NOT_A
from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.chinese import unified
from semantic_layer.text.script import normalise

_DENIAL = re.compile(r"(不|没有?|未)([\u4e00-\u9fff])")
_NOT_YET = frozenset({"没", "没有", "未"})
_OUTCOME = re.compile(r"怎么办|怎么样|会怎|后果|什么影响|会不会")
_MODALS = (
    ("must", re.compile(r"必须|需不需要|需要|要不要|用不用|一定要|非得|得要|必要")),
    ("should", re.compile(r"该不该|应不应该|应该|应当")),
    ("may", re.compile(r"可不可以|可以|能不能|能否|可否|允许|(?<![可功性])能(?![力量源够])")),
)
_HINGE = re.compile(r"(?:之?后|了)?(?:还|再)?(?:能不能|可不可以|可以|能|可|之?前|之?后)(?:再)?")
_TENSES = str.maketrans("", "", "了过着再还就先，, 的")


def denial(c: Comparison) -> Finding | None:
    """What isn't done in one text has not been done in the other ("不来", "没来")."""
    if c.one.language != "zh":
        return None
    here, there = _denied(c.one), _denied(c.other)
    turned = {act for act, kind in here.items() if there.get(act, kind) != kind}
    if not turned:
        return None
    found = difference(c, {here[act] + act for act in turned}, {there[act] + act for act in turned})
    asks_of_it = all(_OUTCOME.search(_plain(side)) for side in (c.one, c.other))
    return replace(found, may_mean_nothing=not asks_of_it)


def _denied(side: Analysis) -> dict[str, str]:
    """Return what is denied, by its first sign, and whether it isn't or has not been."""
    found = _DENIAL.findall(A_NOT_A.sub(r"\1", _plain(side)))
    return {act: "没" if word in _NOT_YET else "不" for word, act in found}


def permission(c: Comparison) -> Finding | None:
    """It must be in one text, should or may be in the other."""
    if c.one.language != "zh" or {c.one.frame, c.other.frame} != {"yesno"}:
        return None
    one, other = _modal(c.one), _modal(c.other)
    return difference(c, [one], [other]) if one and other and one != other else None


def _modal(side: Analysis) -> str:
    plain = normalise(side.text)
    found = [name for name, pattern in _MODALS if pattern.search(plain)]
    return found[0] if len(found) == 1 else ""


def sequence(c: Comparison) -> Finding | None:
    """What is done first in one text is done then in the other ("吃了药能喝酒吗")."""
    if c.one.language != "zh" or c.only_one or c.only_other or c.order == "same":
        return None
    one, other = _around_hinge(c.one), _around_hinge(c.other)
    if not one or not other or one[0] == one[1] or one != other[::-1]:
        return None
    return difference(c, [_plain(c.one)], [_plain(c.other)])


def _around_hinge(side: Analysis) -> tuple[str, ...]:
    """Return the signs before and behind the one hinge, sorted, without tenses; () without one."""
    plain = _ASKING_END.sub("", normalise(side.text))
    parts = _HINGE.split(plain)
    if len(parts) != len("ab"):
        return ()
    return tuple("".join(sorted(part.translate(_TENSES))) for part in parts)


_ASKING_END = re.compile(r"[吗么呢吧?？。!！ ]+$|^(?:请问|为什么)")


def _plain(side: Analysis) -> str:
    return unified(normalise(side.text))
