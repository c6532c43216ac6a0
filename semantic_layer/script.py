"""Characters before words: unify them, take code and quotes out, tell the language. Pure."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from opencc import OpenCC

from semantic_layer.analysis import Language

_SAME = str.maketrans({
    "’": "'", "‘": "'", "`": "`", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
    "「": '"', "」": '"', "『": '"', "』": '"', "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-",
    "…": " ", "\u00ad": None, "\u200b": None, "\ufeff": None,
})  # fmt: skip
_CODE = re.compile(
    r"```.*?```|`[^`\n]+`|\b(?:https?://|www\.)\S+|\b[\w.+-]+@[\w-]+\.[\w.]+", re.DOTALL
)
_QUOTE = re.compile(r'"([^"\n]{1,400})"|(?<![\w])\'([^\'\n]{1,200}?)\'(?![\w])|《([^》]{1,100})》')
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_KANA_SHARE = 8  # a lone の among Chinese characters is only an ornament
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Payloads:
    """A text with code taken out (``rest``), the code, and what stands in quotes."""

    rest: str
    codes: tuple[str, ...]
    quotes: tuple[str, ...]


def normalise(text: str) -> str:
    """Unify compatibility forms, quotation marks, dashes and white space."""
    unified = text
    if not text.isascii():
        unified = unicodedata.normalize("NFKC", text.translate(_SAME)).translate(_SAME)
    return " ".join(unified.replace('""', '"').split())


def take_payloads(text: str) -> Payloads:
    """Take code, URLs and addresses out; name the quoted texts and leave their words in."""
    codes = tuple(
        sorted(match[0].strip("`").strip().rstrip(".,?!") for match in _CODE.finditer(text))
    )
    rest = _CODE.sub(" ", text)
    quotes = tuple(
        sorted(fold(next(filter(None, match.groups()))) for match in _QUOTE.finditer(rest))
    )
    return Payloads(_QUOTE.sub(r" \1\2\3 ", rest), codes, quotes)


def fold(text: str) -> str:
    """Drop case, outer punctuation and white space: what makes two quotes the same."""
    return re.sub(r"[\s,.!?;:，。！？；：、]+", " ", simplified(text.casefold())).strip()


def simplified(text: str) -> str:
    """Write traditional Chinese characters as simplified ones, by phrase where that decides."""
    return text if text.isascii() else str(_traditional_to_simplified().convert(text))


@cache
def _traditional_to_simplified() -> OpenCC:
    return OpenCC("t2s")


def language_of(text: str) -> Language:
    """Tell English, Chinese and others apart by their letters."""
    letters = len(_LETTER.findall(text))
    if not letters:
        return "en"
    han, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if len(_KANA_HANGUL.findall(text)) > han // _KANA_SHARE:
        return "other"
    if han and (4 * han >= letters or han >= 2 * len(_LATIN_WORD.findall(text))):
        return "zh"  # Latin names in a Chinese sentence outnumber its characters
    return "en" if 2 * latin >= letters else "other"
