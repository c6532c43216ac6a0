"""Numbers written as words, English and Chinese, as digits. Pure."""

import re

_UNITS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
}  # fmt: skip
_ALONE = frozenset({"hundred", "thousand"})  # "a hundred"; "a million" is many
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINALS = {
    "first": "1th", "third": "3th", "fourth": "4th", "fifth": "5th", "sixth": "6th",
    "seventh": "7th", "eighth": "8th", "ninth": "9th", "tenth": "10th", "eleventh": "11th",
    "twelfth": "12th", "thirteenth": "13th", "fourteenth": "14th", "fifteenth": "15th",
    "sixteenth": "16th", "seventeenth": "17th", "eighteenth": "18th", "nineteenth": "19th",
    "twentieth": "20th", "thirtieth": "30th", "fortieth": "40th", "fiftieth": "50th",
}  # fmt: skip  # "second" is a unit of time as often
_LAST_ORDINALS = {
    "second": "2th",
    **{word: place for word, place in _ORDINALS.items() if len(place) == len("1th")},
}
_ZH_DIGITS = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "俩": 2}
_ZH_SCALES = {"十": 10, "百": 100, "千": 1000}
_ZH_BIG = {"万": 10**4, "亿": 10**8}
_ZH_RUN = re.compile(r"(?<![周期拜])(?:[零〇一二三四五六七八九两十百万亿]|千(?![米克瓦卡]))+")
_ZH_TEN = re.compile(
    r"十(?=[个位本条张只块元斤吨米里天日月年岁次家名点种]|公[里斤分]|千[克米]|英|厘米|毫|小时|分钟|美元|欧元)"
)
_ZH_ALONE = frozenset("一十百千万亿零")


def read_number(words: list[str], start: int) -> tuple[str, int] | None:
    """Read a spelled number at ``start``; return its digits and the index after it.

    Two numbers in a row ("nine ninety-nine", "seven thirty") are given with a space between. A lone
    "one" is a pronoun as often as a number and is not read.
    """
    total, current, index = 0, 0, start
    while index < len(words):
        word = words[index]
        if word in _UNITS or word in _TENS:
            value = _UNITS.get(word, 0) + _TENS.get(word, 0)
            if not _extends(current, value):
                break
            current += value
        elif word in _SCALES and (index > start or word in _ALONE):
            current = max(current, 1) * _SCALES[word]
            if _SCALES[word] >= _SCALES["thousand"]:
                total, current = total + current, 0
        elif not (word == "and" and index > start and words[index - 1] in _SCALES
                  and index + 1 < len(words) and words[index + 1] in _UNITS | _TENS):  # fmt: skip
            break
        index += 1
    if index == start or words[start:index] == ["one"]:
        return None
    return _joined(str(total + current), words, index)


def _extends(current: int, value: int) -> bool:
    """Say whether a part may follow: units after tens, anything below a hundred after hundreds."""
    low = current % 100
    return low == 0 or (low % 10 == 0 and low > 10 and 0 < value < 10)  # noqa: PLR2004


def _joined(number: str, words: list[str], index: int) -> tuple[str, int]:
    """Add a second number that follows at once, of two figures."""
    if index < len(words) and words[index] in _UNITS | _TENS and len(number) <= len("59"):
        following = read_number(words, index)
        if following is not None and len(following[0]) == len("59"):
            return f"{number} {following[0]}", following[1]
    return number, index


def read_ordinal(words: list[str], start: int) -> tuple[str, int] | None:
    """Return "3th" for "third" and "3rd" alike and the index after it; None for other words."""
    word = words[start]
    if word in _TENS and start + 1 < len(words) and words[start + 1] in _LAST_ORDINALS:
        last = _LAST_ORDINALS[words[start + 1]]
        return f"{_TENS[word] + int(last.removesuffix('th'))}th", start + 2
    if word in _ORDINALS:
        return _ORDINALS[word], start + 1
    match = re.fullmatch(r"(\d+)(st|nd|rd|th)", word)
    return (f"{match[1]}th", start + 1) if match else None


def digits_for_chinese(text: str) -> str:
    """Write Chinese numerals as digits, where they count or name something."""
    text = _ZH_DATE.sub(_dated, _ZH_AND_HALF.sub(_and_half, text))
    text = _ZH_ONE.sub("1", _ZH_PERCENT.sub(r"\1%", text))
    text = _ZH_RUN.sub(_chinese_value, _ZH_BOTH.sub("2", text))
    text = _ZH_SCALED.sub(_scaled, text)
    text = _ZH_FRACTION.sub(r"\2/\1", text)
    text = _ZH_HALF_PAST.sub(r"\1:30", text)
    text = _ZH_MINUTES.sub(r"\1:\2", text)
    return _ZH_HALF.sub("0.5", _ZH_POINT.sub(r"\1.\2", text))


_ZH_PERCENT = re.compile(r"百分之([\d零〇一二三四五六七八九十百]+)")
_ZH_ONE = re.compile(
    r"(?<=分之)一"
    r"|(?<![同某期拜周十百千万亿])一(?=个?(?:小时|钟头|月|年|天|周|星期|礼拜|岁)"
    r"|[公海市英][里斤尺寸两]|千[克米]|[厘毫][米升]|[斤克吨升磅]|美元|欧元)"
)
_ZH_BOTH = re.compile(r"俩(?=个?月|[天年周])")
_ZH_SCALED = re.compile(r"(\d+(?:\.\d+)?)(万|亿|千(?![米克瓦卡])|百|[wk](?![a-z]))")
_ZH_FRACTION = re.compile(r"(\d+)分之(\d+)")
_ZH_HALF_PAST = re.compile(r"(\d{1,2})点半")
_ZH_MINUTES = re.compile(r"(\d{1,2})点(\d{2})分?")
_ZH_POINT = re.compile(r"(\d+)[点度](\d)(?![\d分个到])")
_ZH_HALF = re.compile(
    r"半(?=个?(?:小时|钟头|月|年|岁|天|世纪))|(?<![一大多])半(?=[斤吨碗袋杯瓶升勺桶]|公[斤里]|米(?!饭))"
)
_ZH_AND_HALF = re.compile(
    r"(?<![第同\d.])(\d+|[一二两三四五六七八九十百]+)"
    r"(?:(个)半(?=小时|钟头|月|星期|礼拜|世纪)"
    r"|(小时|个月|[年天周岁斤吨米升碗袋杯瓶勺桶]|公[斤里]|千克|厘米)半(?![载天夜年]))"
)
_ZH_DATE = re.compile(r"(?<!\d)(\d{4})([-/.])(1[0-2]|0?[1-9])\2(3[01]|[12]\d|0?[1-9])(?!\d)")
_ZH_FACTORS = {"万": 10**4, "w": 10**4, "亿": 10**8, "千": 1000, "k": 1000, "百": 100}


def _and_half(match: re.Match[str]) -> str:
    """Write "一个半小时" as "1.5个小时", "一斤半" as "1.5斤"."""
    number = match[1] if match[1].isdigit() else _value_of(match[1])
    return f"{number}.5{match[2] or match[3]}"


def _dated(match: re.Match[str]) -> str:
    return f"{match[1]}年{int(match[3])}月{int(match[4])}日"


def _scaled(match: re.Match[str]) -> str:
    after = match.string[match.end() : match.end() + 1]
    gap = " " if after.isdigit() else ""
    return f"{float(match[1]) * _ZH_FACTORS[match[2]]:.15g}{gap}"


def _chinese_value(match: re.Match[str]) -> str:
    run = match[0]
    if run in _ZH_ALONE and not _ZH_TEN.match(match.string, match.start()):
        return run
    return _value_of(run)


def _value_of(run: str) -> str:
    if not any(c in _ZH_SCALES or c in _ZH_BIG for c in run):
        return "".join(str(_ZH_DIGITS[c]) for c in run)
    total = section = digit = 0
    for c in run:
        if c in _ZH_DIGITS:
            digit = _ZH_DIGITS[c]
        elif c in _ZH_SCALES:
            section += (digit or 1) * _ZH_SCALES[c]
            digit = 0
        else:
            total += (section + digit or 1) * _ZH_BIG[c]
            section = digit = 0
    return str(total + section + digit)
