"""Numbers that two texts state, and which of them say the same otherwise ("48 hours", "2 days").

Knows units of time and the clock; other units are words like any other. Pure.
"""

import re
from collections import Counter
from collections.abc import Sequence

from semantic_layer.text.analysis import Analysis, Token

_DAY = 86_400.0
_SECONDS = {
    "second": 1.0, "sec": 1.0, "秒": 1.0,
    "minut": 60.0, "min": 60.0, "分": 60.0,
    "hour": 3_600.0, "hr": 3_600.0, "h": 3_600.0, "小": 3_600.0, "时": 3_600.0,
    "day": _DAY, "天": _DAY, "日": _DAY,
    "week": 7 * _DAY, "wk": 7 * _DAY, "周": 7 * _DAY, "星": 7 * _DAY, "礼": 7 * _DAY,
    "month": 30.44 * _DAY, "mth": 30.44 * _DAY, "月": 30.44 * _DAY,
    "year": 365.25 * _DAY, "yr": 365.25 * _DAY, "年": 365.25 * _DAY, "岁": 365.25 * _DAY,
}  # fmt: skip
_HALF_DAYS = {"am": 0, "pm": 12}
_CLOCK = re.compile(r"(\d{1,2})[:.](\d{2})")
_CLOSED_CLOCK = re.compile(r"(\d{1,2})([0-5]\d)")
_NOON = 12
_NEAR = 0.035  # 30 days are a month, 52 weeks a year
_TEXTING = frozenset({"1", "2", "4"})  # "2 months left 2 go"; "one" is a pronoun as often

Amount = frozenset[str]  # all readings of a number: equal amounts share one


def unmatched(one: Analysis, other: Analysis) -> tuple[list[str], list[str]]:
    """Return the numbers of each text that the other does not state in any way, in order."""
    here, there = Counter(one.numbers), Counter(other.numbers)
    left = _readings(one, here - there)
    right = _readings(other, there - here)
    for text, amount in list(left):
        match = next((pair for pair in right if _are_one(amount, pair[1])), None)
        if match is not None:
            left.remove((text, amount))
            right.remove(match)
    return sorted(text for text, _ in left), sorted(text for text, _ in right)


def are_converted(one: Analysis, other: Analysis) -> bool:
    """Say whether the numbers differ only by their units."""
    return one.numbers != other.numbers and unmatched(one, other) == ([], [])


def converted(one: Analysis, other: Analysis) -> list[tuple[int, int]]:
    """Return the tokens of spans of time that last just as long ("48 hours", "2 days").

    Indices into both texts' tokens; the number first, then each token of the units.
    """
    if one.numbers == other.numbers:
        return []
    found = []
    spans = _spans(other)
    for i, seconds, units in _spans(one):
        match = next((span for span in spans if span[1] == seconds), None)
        if match is None or one.tokens[i].norm == other.tokens[match[0]].norm:
            continue
        spans.remove(match)
        found += [(i, match[0]), *((at, to) for at in units for to in match[2])]
    return found


def _spans(side: Analysis) -> list[tuple[int, float, tuple[int, ...]]]:
    """Return where each number with a unit of time stands, its seconds, and where its unit does."""
    found = []
    for i, token in enumerate(side.tokens[:-1]):
        value = _value(token.norm) if token.kind == "number" else None
        at = i + 2 if side.tokens[i + 1].norm in _BETWEEN else i + 1
        unit = side.tokens[at].norm if at < len(side.tokens) else ""
        if value is None or unit not in _SECONDS:
            continue
        pair = unit + (side.tokens[at + 1].norm if at + 1 < len(side.tokens) else "")
        last = at + 1 if pair in _LONG_UNITS else at
        found.append((i, round(value * _SECONDS[unit], 6), tuple(range(i + 1, last + 1))))
    return found


_LONG_UNITS = frozenset({"小时", "分钟", "星期", "礼拜"})


def is_time_unit(word: str) -> bool:
    """Say whether a word is a unit of time or half of the day."""
    return word in _SECONDS or word in _HALF_DAYS or word in _TIME_WORDS


_TIME_WORDS = frozenset({"noon", "midnight", "小时", "分钟", "星期", "个月"})


def may_be_texting(numbers: Sequence[str]) -> bool:
    """Say whether numbers on one side only may stand for words ("2 go", "4 u", "1 week")."""
    return _TEXTING.issuperset(numbers)


def _readings(side: Analysis, numbers: Counter[str]) -> list[tuple[str, Amount]]:
    left = Counter(numbers)
    found = []
    for i, token in enumerate(side.tokens):
        if token.kind == "number" and left[token.norm] > 0:
            left[token.norm] -= 1
            after = side.tokens[i + 1 : i + 3]
            found += [(part, frozenset(_ways(part, after))) for part in _parts(token.norm)]
    return found


def _parts(number: str) -> list[str]:
    """Read a range as its ends; a date stays whole."""
    parts = re.split(r"[-/]", number)
    return parts if len(parts) == len("ab") and all(parts) else [number]


def _ways(number: str, after: Sequence[Token]) -> set[str]:
    """Return what a number may say: itself, its value, seconds, minutes of the day."""
    ways = {number, number.removesuffix("th")}
    unit = next((token.norm for token in after if token.norm not in _BETWEEN), "")
    if " " in number:  # spelled in pairs: "forty-nine ninety-nine", "seven thirty"
        first, second = number.split(" ")
        ways |= {f"{first}.{second}", f"{first}:{second}", f"{first}{second}"}
    for way in list(ways):
        ways |= _clock(way, unit)
        if (value := _value(way)) is not None:
            ways.add(f"{value:g}")
            if unit in _SECONDS:
                ways.add(f"s{value * _SECONDS[unit]:.12g} {unit}")
    return ways


_BETWEEN = frozenset({"个", "多", "来"})


def _clock(number: str, unit: str) -> set[str]:
    """Return the minutes of the day that a time may mean; "7:30" may be either half's."""
    match = _CLOCK.fullmatch(number)
    if match is None and unit in _HALF_DAYS:
        match = _CLOSED_CLOCK.fullmatch(number)  # "730 pm"
    is_hour = number.isdecimal() and (unit in _HALF_DAYS or unit == "点")
    if match is None and not is_hour:
        return set()
    hour, minute = (int(match[1]), int(match[2])) if match else (int(number), 0)
    if hour > _NOON or unit not in _HALF_DAYS:
        hours = {hour, hour + _NOON} if hour < _NOON else {hour}
    else:
        hours = {hour % _NOON + _HALF_DAYS[unit]}
    return {f"m{60 * hour + minute}" for hour in hours}


def _value(number: str) -> float | None:
    try:
        return float(number)
    except ValueError:
        return None


def _are_one(one: Amount, other: Amount) -> bool:
    if one & other or _is_short_year(one, other) or _is_short_year(other, one):
        return True
    return any(
        one_unit != other_unit and abs(a - b) <= _NEAR * max(a, b)
        for a, one_unit in _durations(one)
        for b, other_unit in _durations(other)
    )


def _durations(amount: Amount) -> list[tuple[float, str]]:
    spans = (way[1:].split(" ") for way in amount if way.startswith("s"))
    return [(float(seconds), unit) for seconds, unit in spans]


def _is_short_year(short: Amount, long: Amount) -> bool:
    """Say whether one is the last two figures of the other, a year ("24", "2024")."""
    return any(f"{century}{way}" in long for way in short for century in (19, 20))
