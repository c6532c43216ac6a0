"""Characters before words: unify them, take code and quotes out, tell the language. Pure."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache

from opencc import OpenCC

from semantic_layer.text.analysis import Language

_SAME = str.maketrans({
    "’": "'", "‘": "'", "`": "`", "´": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"',
    "「": '"', "」": '"', "『": '"', "』": '"', "–": "-", "—": "-", "−": "-", "‐": "-", "‑": "-",
    "…": " ", "⁄": "/", "\u00ad": None, "\u200b": None, "\ufeff": None,
})  # fmt: skip
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni", strict=True))
_POWER = re.compile(f"(?<=[\\w)])[{''.join(_RAISED)}]+")
_OPERATORS = {
    "plus": " + ", "minus": " - ", "times": " * ", "multiplied by": " * ", "divided by": " / ",
}  # fmt: skip
_SCALES = {"C": " Celsius", "F": " Fahrenheit"}
_DEGREES = re.compile(r"\s?°\s?([CFcf])\b")
_SPELLED = re.compile(rf"(?<=\d) ({'|'.join(_OPERATORS)}) (?=\d)", re.IGNORECASE)
_FRACTION = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_CODE = re.compile(
    r"```.*?```|`[^`\n]+`|\b(?:https?://|www\.)\S+|\b[\w.+-]{1,64}@[\w-]+\.[\w.]+", re.DOTALL
)
_MAY_BE_PAYLOAD = re.compile(r"[`@\"'《]|://|www\.")  # what _CODE and _QUOTE can't do without
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


@lru_cache(maxsize=512)  # one look-up reads the same few texts by many guards
def normalise(text: str) -> str:
    """Unify compatibility forms, quotation marks, dashes and white space."""
    unified = text
    if not text.isascii():
        plain = _FRACTION.sub(" ", _POWER.sub(_written_out, text.translate(_SAME)))
        unified = unicodedata.normalize("NFKC", plain).translate(_SAME)
    joined = " ".join(unified.replace('""', '"').split())
    joined = _DEGREES.sub(lambda found: _SCALES[found[1].upper()], joined)
    return _SPELLED.sub(lambda found: _OPERATORS[found[1].lower()], joined)


def _written_out(raised: re.Match[str]) -> str:
    return "^" + "".join(_RAISED[sign] for sign in raised[0])


def take_payloads(text: str) -> Payloads:
    """Take code, URLs and addresses out; name the quoted texts and leave their words in."""
    if not _MAY_BE_PAYLOAD.search(text):
        return Payloads(text, (), ())
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


def plain_of(text: str) -> str:
    """Write a text in unified forms, simplified characters and small letters."""
    return simplified(normalise(text).casefold())


def traditional(text: str) -> str:
    """Write simplified Chinese characters as traditional ones, by phrase where that decides."""
    return text if text.isascii() else str(_simplified_to_traditional().convert(text))


@cache
def _traditional_to_simplified() -> OpenCC:
    return OpenCC("t2s")


@cache
def _simplified_to_traditional() -> OpenCC:
    return OpenCC("s2t")


def language_of(text: str) -> Language:
    """Tell English, Chinese and others apart by their letters."""
    if text.isascii():
        return "en"
    letters = len(_LETTER.findall(text))
    if not letters:
        return "en"
    han, latin = len(_HAN.findall(text)), len(_LATIN.findall(text))
    if len(_KANA_HANGUL.findall(text)) > han // _KANA_SHARE:
        return "other"
    if han and (4 * han >= letters or han >= 2 * len(_LATIN_WORD.findall(text))):
        return "zh"  # Latin names in a Chinese sentence outnumber its characters
    return "en" if 2 * latin >= letters else "other"
