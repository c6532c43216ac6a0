"""Pieces of text that change from one request to the next: times, ids, counters. Pure."""

import re
from typing import Literal

Volatile = Literal["timestamp", "uuid", "identifier", "number"]

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_WEEKDAY = (
    r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|"
    r"(?:星期|周|礼拜)[一二三四五六日天]"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_HAN = "〇零一二三四五六七八九十"
_CLOCK = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2}(?:[.,]\d+)?)?"
_TIMES = (
    rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:[T ]{_CLOCK})?(?:Z|[+-]\d{{2}}:?\d{{2}})?",
    r"\b\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})\b",
    rf"{_CLOCK}(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:Z|[+-]\d{{2}}:?\d{{2}})?",
    r"\b\d{1,2}\s?[AaPp]\.?[Mm]\b\.?",
    rf"\b{_MONTH}\s{_DAY}\b(?:,?\s\d{{4}})?",
    rf"\b{_DAY}\s{_MONTH}(?:,?\s\d{{4}})?",
    rf"\b{_MONTH}\s\d{{4}}\b",
    rf"[\d{_HAN}]{{2,4}}\s?年(?:\s?[\d{_HAN}]{{1,3}}\s?月)?(?:\s?[\d{_HAN}]{{1,3}}\s?[日号])?",
    rf"[\d{_HAN}]{{1,3}}\s?月(?:\s?[\d{_HAN}]{{1,3}}\s?[日号])?",
    rf"[\d{_HAN}]{{1,3}}\s?[日号]",
    rf"[\d{_HAN}]{{1,3}}\s?[时点](?:\s?[\d{_HAN}]{{1,3}}\s?分)?(?:\s?[\d{_HAN}]{{1,3}}\s?秒)?",
    rf"[\d{_HAN}]{{1,3}}\s?分\s?[\d{_HAN}]{{1,3}}\s?秒",
    r"(?:上午|下午|中午|早上|晚上|凌晨)",
    _WEEKDAY,
    r"\b1[4-9]\d{8}(?:\d{3})?(?:\.\d+)?\b",
)
_UUID = r"\b[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\b"
_IDENTIFIER = (
    r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[A-Za-z0-9_-]{6,}(?![\w-])|"
    r"(?<!\w)(?=[A-Za-z]*[a-z][A-Z])[A-Za-z]{16,}(?!\w)"
)
_NUMBER = rf"\d+(?:[.,]\d+)*|[{_HAN}百千万两]+"
_ANY = re.compile(
    f"(?P<uuid>{_UUID})|(?P<timestamp>{'|'.join(_TIMES)})|"
    f"(?P<identifier>{_IDENTIFIER})|(?P<number>{_NUMBER})"
)
_DIGITS = re.compile(r"\d+")
_KINDS: dict[str, Volatile] = {
    "uuid": "uuid",
    "timestamp": "timestamp",
    "identifier": "identifier",
    "number": "number",
}


def volatile_difference(here: str, cached: str) -> tuple[Volatile, str, str] | None:
    """Return the first volatile piece in which two texts differ, if they differ in such only."""
    ours, theirs = list(_ANY.finditer(here)), list(_ANY.finditer(cached))
    if _ANY.sub("\0", here) != _ANY.sub("\0", cached):
        return None
    for a, b in zip(ours, theirs, strict=True):
        if a[0] != b[0]:
            return _kind(a, b), a[0], b[0]
    return None


def _kind(a: re.Match[str], b: re.Match[str]) -> Volatile:
    kinds = {_KINDS[str(match.lastgroup)] for match in (a, b)}
    if kinds == {"identifier"} and _DIGITS.sub("", a[0]) == _DIGITS.sub("", b[0]):
        return "number"
    return next(kind for kind in _KINDS.values() if kind in kinds)
