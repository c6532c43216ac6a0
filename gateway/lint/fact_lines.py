"""Lines of a system prompt that are nothing but a value with its label, and change. Pure.

Such a line may stand elsewhere: ``Current time: 10:00``. Every word of it must be known as a label
of times, ids, seeds or counters; a line with any other word, in a list or in fenced code is not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.lint.fence import is_fence

MAX_LINE_CHARS = 120
MAX_WORDS = 6
MAX_LABELS = 10_000

_LABEL_WORDS = """
    the is it it's current now today today's as of date time day datetime timestamp ts clock local
    server session conversation thread chat user customer client account tenant request trace span
    correlation id uid sid uuid identifier seed random counter turn step iteration attempt ticket
    heute ist der es jetzt aktuell aktuelle aktuelles datum uhrzeit zeit stand sitzung kunde nutzer
    benutzer anfrage zähler schritt zufallszahl vom um
    heure du jour actuelle étape requête utilisateur aujourd'hui
    hora fecha actual sesión usuario cliente paso hoy es solicitud
    сейчас дата время сессия пользователь запрос
"""
_TIME_WORDS = """
    january february march april may june july august september october november december jan feb
    mar apr jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember dez
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun montag
    dienstag mittwoch donnerstag freitag samstag sonntag am pm utc gmt cet cest mez mesz est edt pst
    pdt uhr
"""
_LABELS = frozenset(_LABEL_WORDS.split())
_IN_VALUES = frozenset(_TIME_WORDS.split())
TIME_NAMES = re.compile(rf"\b(?:{'|'.join(_TIME_WORDS.split())})\b", re.IGNORECASE)
_ABOUT = frozenset({"context", "information", "info", "environment", "metadata", "kontext"})
_WIDE = re.compile(
    r"当前|随机|种子|现在|今天|今日|时间|时刻|日期|会话|用户|请求|编号|星期[一二三四五六日天]|上午|下午|晚上|凌晨|"
    r"現在|時刻|日時|本日|セッション|ユーザー|リクエスト|です|[是为号第轮次步年月日点时分秒時]"
)
_WIDE_VALUES = re.compile(r"星期.|上午|下午|晚上|凌晨|[年月日点时分秒時]")
_IS_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_TOKEN = re.compile(r"[^\s=：，。,;()（）]+")
_VALUE = re.compile(r"#?[A-Za-z0-9_.:/+-]*\d[A-Za-z0-9_.:/+-]*")
_LISTED = re.compile(r"\s|[-*•>|+<{\[\"'`]|\d+[.)、]\s")
_ENDS = re.compile(r"[.!?。！？)）}\]…]\s*$")
_HEADING = re.compile(r"#{1,6}\s+(.*\S)\s*$|([^\d\n]{1,60})[:：]\s*$")
_POINTS = re.compile(
    r"\b(?:above|below|oben|unten|ci-dessus|ci-dessous|arriba|abajo)\b|上述|上面|以上|下面|выше|ниже|"
    r"\b(?:last|latest|final|most recent|next) (?:user )?(?:message|turn|line)\b|"
    r"\bletzten? (?:nachricht|zeile)|\bdernier message|\búltimo mensaje|последн\w+ сообщени|"
    r"最后一条|最後のメッセージ",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Fact:
    """Lines from ``start`` to before ``end``."""

    start: int
    end: int
    label: str


class FactLines:
    """Learns the fact lines of system prompts; takes those that change out of a prompt."""

    def __init__(self) -> None:
        self._written: dict[str, int | None] = {}  # None is more than one way
        self._doubled: set[str] = set()

    def learn(self, text: str) -> None:
        """Take one system prompt of the log."""
        lines = text.split("\n")
        seen: set[str] = set()
        for fact in _facts(lines):
            written = hash("\n".join(lines[fact.start : fact.end]).rstrip())
            if fact.label in seen:
                self._doubled.add(fact.label)
            seen.add(fact.label)
            if fact.label in self._written:
                if self._written[fact.label] != written:
                    self._written[fact.label] = None
            elif len(self._written) < MAX_LABELS:
                self._written[fact.label] = written

    def take(self, text: str) -> tuple[list[str], str]:
        """Return the facts that change from prompt to prompt, and the text without them."""
        lines = text.split("\n")
        facts = [fact for fact in _facts(lines) if self._changes(fact)]
        if not facts or _POINTS.search(text):
            return [], text
        moved = ["\n".join(lines[fact.start : fact.end]).strip() for fact in facts]
        for fact in reversed(facts):
            is_between = not any(
                lines[at].strip() for at in (fact.start - 1, fact.end) if 0 <= at < len(lines)
            )
            del lines[fact.start : fact.end + (is_between and fact.end < len(lines))]
        rest = "\n".join(lines)
        return moved, rest if text[:1].isspace() else rest.lstrip("\n")

    def _changes(self, fact: _Fact) -> bool:
        return self._written.get(fact.label, 0) is None and fact.label not in self._doubled


def _facts(lines: list[str]) -> Iterator[_Fact]:
    in_fence = False
    for at, line in enumerate(lines):
        if is_fence(line):
            in_fence = not in_fence
        label = None if in_fence else _label(line)
        if label is None:
            continue
        before = lines[at - 1] if at else ""
        after = lines[at + 1] if at + 1 < len(lines) else ""
        heading = _heading(before)
        if label and _stands_alone(line, before, after):
            yield _Fact(at, at + 1, label)
        elif not label and heading and _stands_alone("=", lines[at - 2] if at > 1 else "", after):
            yield _Fact(at - 1, at + 1, f"# {heading}")


def _stands_alone(line: str, before: str, after: str) -> bool:
    """Say whether no sentence runs from the line before, or into the next."""
    is_ended = any(mark in line for mark in ":=：") or not after[:1].islower()
    is_headed = before.startswith("#") and _heading(before) is not None
    is_begun = not before.strip() or _ENDS.search(before) or _label(before) or is_headed
    return bool(is_ended and not after[:1].isspace() and is_begun)


def _heading(line: str) -> str | None:
    found = _HEADING.match(line)
    if found is None:
        return None
    words = [word.strip(":").casefold() for word in (found[1] or found[2]).split()]
    known = all(word in _LABELS or word in _ABOUT for word in words)
    return " ".join(words) if known and len(words) <= MAX_WORDS else None


def _label(line: str) -> str | None:
    """Return the words beside the values of a line; None where it is no fact."""
    if len(line) > MAX_LINE_CHARS or _LISTED.match(line):
        return None
    words: list[str] = []
    has_value = False
    for token in _TOKEN.findall(line):
        plain = token.strip(":.-–").casefold()
        if _IS_WIDE.search(plain):
            rest = _WIDE.sub("", plain)
            words.append(re.sub(r"\d", "", _WIDE_VALUES.sub("", plain)))
            if rest and not _VALUE.fullmatch(rest):
                return None
            has_value = has_value or bool(rest)
        elif _VALUE.fullmatch(plain):
            if "//" in plain:
                return None
            has_value = True
        elif plain and plain not in _IN_VALUES:
            parts = plain.replace("-", "_").split("_")
            if not all(part in _LABELS for part in parts):
                return None
            words.append(plain)
    return " ".join(filter(None, words)) if has_value and len(words) <= MAX_WORDS else None
