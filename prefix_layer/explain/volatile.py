"""Pieces of text that change from one request to the next: times, ids, counters. Pure."""

import re
import unicodedata
from typing import Literal

Volatile = Literal["timestamp", "uuid", "identifier", "number"]

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    r"Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?|"
    r"Januar|Jänner|Februar|März|Mär|Mai|Juni|Juli|Okt(?:ober)?|Dez(?:ember)?|"
    r"janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|"
    r"enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|"
    r"января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)\b\.?"
)
_WEEKDAY = (
    r"\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b|"
    r"\b(?:Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonnabend|Sonntag)s?\b|"
    r"\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\b|"
    r"\b(?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b|"
    r"\b(?:понедельник|вторник|сред[аы]|четверг|пятниц[аы]|суббот[аы]|воскресенье)\b|"
    r"(?:星期|周|週|礼拜|禮拜)[一二三四五六日天]|[月火水木金土日]曜日?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|er|º)?\.?"
_HAN = "〇零一二三四五六七八九十廿卅"
_CLOCK = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2}(?:[.,]\d+)?)?"
_HAN_CLOCK = (
    rf"[\d{_HAN}两]{{1,3}}\s?[时時点點](?:\s?[\d{_HAN}]{{1,3}}\s?分|[一三]刻|[半整钟鐘])?"
    rf"(?:\s?[\d{_HAN}]{{1,3}}\s?秒)?"
)
_TIMES = (
    rf"\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?:[T ]{_CLOCK})?(?:Z|[+-]\d{{2}}:?\d{{2}})?",
    r"\b\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})\b",
    rf"{_CLOCK}(?:\s?[AaPp]\.?[Mm]\b\.?)?(?:Z|[+-]\d{{2}}:?\d{{2}})?",
    r"\b\d{1,2}\s?[AaPp]\.?[Mm]\b\.?",
    rf"\b{_MONTH}\s{_DAY}\b(?:,?\s\d{{4}})?",
    rf"\b{_DAY}\s(?:de\s)?{_MONTH}(?:,?\s(?:de\s)?\d{{4}})?",
    rf"(?:{_CLOCK}|\b\d{{1,2}}(?:[.:]\d{{2}})?)\s?Uhr\b(?:\s\d{{1,2}}\b)?",
    rf"\b{_MONTH}\s\d{{4}}\b",
    rf"[\d{_HAN}]{{2,4}}\s?年(?:\s?[\d{_HAN}]{{1,3}}\s?月)?(?:\s?[\d{_HAN}]{{1,3}}\s?[日号])?",
    rf"[\d{_HAN}]{{1,3}}\s?月(?:\s?[\d{_HAN}]{{1,3}}\s?[日号])?",
    rf"[\d{_HAN}]{{1,3}}\s?[日号]",
    _HAN_CLOCK,
    rf"[\d{_HAN}]{{1,3}}\s?分\s?[\d{_HAN}]{{1,3}}\s?秒",
    rf"初[{_HAN}]",
    r"(?:上午|下午|中午|早上|晚上|凌晨|清晨|早晨|傍晚|夜里|午前|午後|午后)",
    r"\b(?:morgens|vormittags|mittags|nachmittags|abends|nachts)\b",
    _WEEKDAY,
    r"\b1[4-9]\d{8}(?:\d{3})?(?:\.\d+)?\b",
)
_UUID = r"\b[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\b"
_IDENTIFIER = (
    r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[A-Za-z0-9_-]{6,}(?![\w-])|"
    r"(?<!\w)(?=[A-Za-z]*[a-z][A-Z])[A-Za-z]{16,}(?!\w)"
)
_UNITS = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|"
    r"eigh|nine)teen|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)"
)
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_WORDS = (
    rf"\b(?:{_TENS}(?:[\s-]{_UNITS})?|{_UNITS}|zero|hundred|thousand|million)"
    rf"(?:\s(?:and\s)?(?:{_TENS}(?:[\s-]{_UNITS})?|{_UNITS}|hundred|thousand|million))*\b|"
    r"\b(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf)\b"
)
_NUMBER = rf"\d+(?:[.,]\d+)*|[{_HAN}百千万两]+|(?i:{_WORDS})"
_MAY_START = r"(?=\d|[^\x00-\x7f]|\b\w|[_-])"  # spares the others within a word
_ANY = re.compile(
    f"{_MAY_START}(?:(?P<uuid>{_UUID})|(?P<timestamp>{'|'.join(_TIMES)})|"
    f"(?P<identifier>{_IDENTIFIER})|(?P<number>{_NUMBER}))"
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
    if len(ours) != len(theirs) or _between(here, ours) != _between(cached, theirs):
        return None
    for a, b in zip(ours, theirs, strict=True):
        if unicodedata.normalize("NFKC", a[0]) != unicodedata.normalize("NFKC", b[0]):
            return _kind(a, b), a[0], b[0]
    return None


def _between(text: str, found: list[re.Match[str]]) -> list[str]:
    """Return what stands before, between and behind the pieces."""
    starts = [0, *(piece.end() for piece in found)]
    ends = [*(piece.start() for piece in found), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _kind(a: re.Match[str], b: re.Match[str]) -> Volatile:
    kinds = {_KINDS[str(match.lastgroup)] for match in (a, b)}
    if kinds == {"timestamp", "number"} and a[0].isdigit() and b[0].isdigit():
        return "number"
    if kinds == {"identifier"} and _DIGITS.sub("", a[0]) == _DIGITS.sub("", b[0]):
        return "number"
    return next(kind for kind in _KINDS.values() if kind in kinds)
