"""What an identifier or number that changes is for, told by the words before it. Pure."""

import re

from prefix_layer import Edit, Finding

BEFORE_CHARS = 40
END_CHARS = 24

_NAMES = {
    "random seed": (
        "seed", "种子", "種子", "graine", "semilla", "сид", "시드", "シード", "zufallszahl",
        "startwert",
    ),
    "session id": (
        "session", r"\bsess[_-]", r"\bsid\b", "conversation", "thread", "chat.?id", "sitzung",
        "sesión", "sessão", "сесси", "会话", "對話", "对话", "セッション", "세션",
    ),
    "user id": (
        "user", "customer", "account", "tenant", "client", "nutzer", "kunde", "usuario", "usuário",
        "utilisateur", "пользовател", "用户", "客户", "ユーザ", "사용자",
    ),
    "request id": (
        "request", r"req\b", "trace", "span", "correlation", "call.?id", "run.?id", "anfrage",
        "solicitud", "pedido", "requête", "запрос", "请求", "リクエスト", "요청",
    ),
    "counter": (
        "count", "turn", "step", "iteration", "attempt", r"no\.", r"nr\.", "#", "zähler", "schritt",
        "paso", "étape", "шаг", "次", "第", "回目", "번째",
    ),
}  # fmt: skip
_PATTERNS = {name: re.compile("|".join(words), re.IGNORECASE) for name, words in _NAMES.items()}
_TIME = re.compile(
    r"time|date|now\b|clock|\bts\b|epoch|unix|zeit|datum|jetzt|heure|hora|fecha|время|дата|сейчас|"
    r"时间|時間|时刻|時刻|日期|日時|现在|現在|시간|시각",
    re.IGNORECASE,
)
_INTEGER = re.compile(r"\d+$")


def is_labelled_number(found: Finding, text: str, start: int) -> bool:
    """Say whether digits that may be seconds since 1970 are no time by the words before them."""
    if found.cause != "timestamp" or not (found.piece + found.cached).isdigit():
        return False
    line = text[max(0, start - BEFORE_CHARS) : start].rsplit("\n", 1)[-1]
    return _last_name(line) not in ("", "counter") and _TIME.search(line) is None


def is_asked_for(found: Finding, text: str, start: int) -> bool:
    """Say whether a number near the end of a user's text is what the user asks about."""
    line = text[max(0, start - BEFORE_CHARS) : start].rsplit("\n", 1)[-1]
    return found.cause == "number" and len(text) - start <= END_CHARS and not _last_name(line)


def volatile_name(cause: str, text: str, start: int, edit: Edit) -> str:
    """Name what changes at ``start`` of a text; empty where its words don't tell."""
    if cause not in ("uuid", "identifier", "number"):
        return ""
    before = text[max(0, start - BEFORE_CHARS) : start + len(edit.here)]
    line = before.rsplit("\n", 1)[-1]
    if cause == "number" and _is_next(edit.here, edit.cached):
        return "counter"
    return _last_name(line)


def _last_name(line: str) -> str:
    found = [(m.end(), name) for name, words in _PATTERNS.items() for m in words.finditer(line)]
    return max(found)[1] if found else ""


def _is_next(here: str, cached: str) -> bool:
    ours, theirs = _INTEGER.search(here.strip()), _INTEGER.search(cached.strip())
    return ours is not None and theirs is not None and abs(int(ours[0]) - int(theirs[0])) == 1
