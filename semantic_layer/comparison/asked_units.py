"""A guard over the unit of time that is asked for: the year, the day, the hour. Pure."""

import re
from dataclasses import replace

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.analysis import Analysis
from semantic_layer.text.script import plain_of

_EN = re.compile(
    r"\b(?:what|which)(?:'s| is| was| are| will be)?(?: the)?(?: exact| calendar| specific)? "
    r"(time of (?:year|month|day)|day of the (?:week|year|month)|"
    r"weekday|time|hour|date|day|week|month|season|year|decade|century)\b(?! \w+ings?\b)"
)
_ALIKE = {"hour": "time", "day of the week": "weekday", "day of the month": "date"}
_ZH = (
    ("weekday", re.compile(r"星期几|周几|礼拜几")),
    ("date", re.compile(r"几号|几日|哪一?[天日]|什么日期")),
    ("time", re.compile(r"几点")),
    ("month", re.compile(r"几月|哪一?个?月")),
    ("year", re.compile(r"哪一?年|几几年|什么年份?|何年")),
    ("season", re.compile(r"哪个季节|什么季节")),
)
_EN_MANY = re.compile(
    r"\bhow many (second|minute|hour|day|night|week|month|year)s? "
    r"(?:does|do|did|will|would|can|should) "
)
_ZH_MANY = re.compile(r"(?:几|多少)个?(分钟|小时|天|周|星期|月|年)")
_OF_A_MOMENT = frozenset({"time", "date", "day"})  # what "when" asks for as often


def asked_unit(c: Comparison) -> Finding | None:
    """The day is asked for in one text, the year in the other, or any time at all."""
    one, other = _many(c.one), _many(c.other)
    if one and other and one != other:
        return difference(c, [one], [other])
    one, other = _unit(c.one), _unit(c.other)
    if one == other:
        return None
    found = difference(c, [one or "when"], [other or "when"])
    if one and other:
        return found
    is_narrower = (one or other) not in _OF_A_MOMENT and "when" in (c.one.frame, c.other.frame)
    return replace(found, may_mean_nothing=True) if is_narrower else None


def _many(side: Analysis) -> str:
    """Return the unit of which a text asks how many, "" where it asks for none."""
    plain = plain_of(side.text)
    found = (_ZH_MANY if side.language == "zh" else _EN_MANY).search(plain)
    return "" if found is None else found[1]


def _unit(side: Analysis) -> str:
    """Return the unit of time that a text asks for, "" where it asks for none."""
    plain = plain_of(side.text)
    if side.language == "zh":
        return next((name for name, pattern in _ZH if pattern.search(plain)), "")
    found = _EN.search(plain)
    return "" if found is None else _ALIKE.get(found[1], found[1])
