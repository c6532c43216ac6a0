"""The signs of a text that say something: formulas, flags, paths, code. Pure.

Commas, stops, dashes and brackets around words are none, nor what numbers are written with.
"""

import re
from functools import lru_cache

from semantic_layer.text.script import normalise

_CODE = re.compile(
    r"```.*?```|`[^`\n]+`|\b(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.]+", re.DOTALL
)
_HAN = re.compile(r"[·•`®™©℃℉\u3000-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_EMPHASIS = re.compile(r"\*\*(?=[^\W\d_]{2})|(?<=[^\W\d_]{2})\*\*|~+(?![\w/])")
_CALL = re.compile(r"(?<!\w)[A-Za-z_][\w.]*\((?=[^()]*(?:[\d'\",=\[]|\b[A-Za-z]\b))[^()]{1,60}\)")
_OF_ONE = re.compile(r"\b(sin|cos|tan|cot|sec|ln|log)\((\d*[a-z])\)")
_COLUMNS = re.compile(
    r"\b(?:(?:SELECT|FROM|INTO|VALUES|RETURNING|SET)|(?i:(?:order|group|sort(?:ed)?|partition) by))"
    r"\s+[\w.*]+(?:\s*,\s*[\w.*]+)+"
)
_SPACED = re.compile(
    r"(?<![^\W\d_]{2})(?<=[\w)\]}'\"])\s*([=<>!+*^&|~/×÷]*[=<>+*^&|/×÷][=<>!+*^&|~/×÷]*)\s*"
    r"(?=[\w(\[{'\"$-])(?!\(?[^\W\d_]{2})"
)
_MINUS = re.compile(r"(?<=[\d)])\s*-\s*(?=[\d(])")
_SHELL = re.compile(r"(?<!\w)(?:cd|ls|cp|mv|rm|cat|find|git add)$", re.IGNORECASE)
_PATH = re.compile(r"\.{1,2}/\w")
_OUTER = "\"',;:.?¿¡"
_NAME = re.compile(
    r"c\+\+|[cfj]#|\.net|node\.js|&|/|\+|-+|%|°[cf]?|#\d+|[!?.,:;…'\"]+|\w+\(e?s\)", re.IGNORECASE
)
_PLAIN = re.compile(
    r"(?<=[^\W\d_])['.,:?!&/-]+(?=\w)"  # it's, e-mail, and/or, COVID-19
    r"|(?<=\d)[.,:&/-](?=\d)|(?<=\d)[-/,](?=[^\W\d_]|[$£€¥]\d)"  # 10:30, 3/4, 5-day
    r"|^[$£€¥#](?=\d)|(?<=[-/])[$£€¥](?=\d)|(?<=\d)[%°$£€¥]|(?<=\d)['\"]+"
    r"|(?<=[^\W\d_])['./}]+$|_"
)
_WORDY = re.compile(r"[(\[]?[^\W\d_]{2,}[)\]]?[^\w]*(?:\([^\W\d_]{2,})?")
_SIGN = re.compile(r"[^\w\s\u2190-\u2bff\u3200-\u33ff\U0001f000-\U0001faff\u200d\ufe0f]")
_FLAG = re.compile(r"-[A-Za-z]{1,3}|--[A-Za-z][\w-]*")
_SLOPPY_DASH = re.compile(r"-[^\W\d_]{4,}.*|.*[^\W\d_]-")


@lru_cache(maxsize=4096)
def formulas(text: str) -> tuple[str, ...]:
    """Return the formulas and signs of a text, sorted; flags and escapes keep their case."""
    chunks = _rewritten(normalise(text)).split()
    found = (_formula(chunks, i) for i in range(len(chunks)))
    return tuple(sorted(filter(None, found)))


def _rewritten(plain: str) -> str:
    """Take out what is no formula, and close those up that have spaces in them.

    Each pattern is tried only where a sign that it cannot do without is there.
    """
    if _has(plain, "`@") or "://" in plain or "www." in plain:
        plain = _CODE.sub(" ", plain)
    if "`" in plain or not plain.isascii():
        plain = _HAN.sub(" ", plain)
    if _has(plain, "*~"):
        plain = _EMPHASIS.sub("", plain)
    if "(" in plain:
        plain = _OF_ONE.sub(r"\1 \2", plain)
        plain = _CALL.sub(lambda call: re.sub(r"\s+", "_", call[0]), plain)
    if "," in plain:
        plain = _COLUMNS.sub(lambda listed: re.sub(r"\s*,\s*|\s+", "=", listed[0]), plain)
    if _has(plain, "=<>+*^&|/×÷"):
        plain = _SPACED.sub(r"\1", plain)
    return _MINUS.sub("-", plain) if "-" in plain else plain


def _has(text: str, signs: str) -> bool:
    """Say whether a text has any of some signs."""
    return any(sign in text for sign in signs)


def _formula(chunks: list[str], i: int) -> str:
    """Return what a chunk says by signs, "" for a word, a number or a mere mark."""
    chunk = chunks[i]
    if chunk.isalnum():
        return ""
    is_mark = not any(sign.isalnum() for sign in chunk)
    if is_mark and _SHELL.search(" ".join(chunks[max(0, i - 2) : i])):
        return chunk.rstrip("?!") or chunk
    core = chunk.strip(_OUTER) if not _PATH.match(chunk) else chunk.rstrip(_OUTER)
    core = core if core.endswith(")!") else re.sub(r"(?<![\d)])!+$", "", core.rstrip("?"))
    if _is_pattern(chunks, i):
        return chunk
    if (
        not core
        or core.isalnum()
        or any(map(_NAME.fullmatch, (core, core.strip("()"))))
        or _SLOPPY_DASH.fullmatch(core)
    ):
        return ""
    inner = _unwrapped(core)
    if not _SIGN.search(_PLAIN.sub("", inner)):
        return ""
    return core if _FLAG.fullmatch(core) or "\\" in core else core.casefold()


def _is_pattern(chunks: list[str], i: int) -> bool:
    """Say whether a lone letter has a "?" in the middle of a sentence: "a? matches"."""
    return (
        re.fullmatch(r"\w\?", chunks[i]) is not None
        and i + 1 < len(chunks)
        and chunks[i + 1][0].islower()
    )


def _unwrapped(core: str) -> str:
    """Take off brackets that stand around words, or begin or end some."""
    if "[" in core or "{" in core or "]" in core:
        wordy = core.strip("[]{}(),.;:!?'\"")
        return wordy if wordy.isalpha() and len(wordy) > 1 else core
    opened = core.removeprefix("(")
    closed = (
        opened[:-1] if opened.endswith(")") and opened.count("(") < opened.count(")") else opened
    )
    closed = closed.strip("\"',;:.?")
    if "(" in closed and ")" not in closed and _WORDY.fullmatch(closed):
        return ""
    return closed
