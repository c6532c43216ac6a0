"""Numbers in an English text as tokens: digits with what clings to them, words, halves. Pure."""

from semantic_layer.text.analysis import Token
from semantic_layer.text.english_words import Word
from semantic_layer.text.lexicon import Lexicon
from semantic_layer.text.numerals import read_number, read_ordinal

_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "¥": "yen"}
_MULTIPLIERS = {"k": 1_000, "bn": 10**9}
_MILLIONS = {"m": 1_000_000}  # of money only: "100 m" is a length
_MOST_HOURS = 12
_Read = tuple[list[Token], int]


def number_at(words: list[Word], lowers: list[str], index: int, lexicon: Lexicon) -> _Read | None:
    """Read the number that begins at ``index``; give its tokens and the next index."""
    surface = words[index].surface
    if (amount := _in_words(lowers, index)) is not None:
        number, unit, after = amount
        return [Token(number, "number", surface), *([Token(unit)] if unit else [])], after
    if (ordinal := _ordinal(lowers, index, lexicon)) is not None:
        return [Token(ordinal[0], "number", surface)], ordinal[1]
    if (spelled := read_number(lowers, index)) is not None:
        return _with_half(Token(spelled[0], "number", surface), lowers, spelled[1])
    if lowers[index][0].isdigit() or lowers[index][0] in _CURRENCIES:
        return _figure(words, index)
    return None


def _in_words(lowers: list[str], index: int) -> tuple[str, str, int] | None:
    """Read "half an hour", "half (past) seven", "a dozen", "a fortnight", "a decade"."""
    word = lowers[index]
    if word == "half":
        return _half(lowers, index)
    if word == "one" and lowers[index + 1 : index + 2] and lowers[index + 1] in _SPANS:
        return "1", "", index + 1
    if word in _NAMED:
        number, unit = _NAMED[word]
        return number, unit, index + 1
    return None


def _half(lowers: list[str], index: int) -> tuple[str, str, int] | None:
    following = lowers[index + 1] if index + 1 < len(lowers) else ""
    skip = 2 if following in {"a", "an"} else 1
    if lowers[index + skip : index + skip + 1] == ["dozen"]:
        return "6", "", index + skip + 1
    if following in {"a", "an"}:
        return "0.5", "", index + 2
    place = index + (2 if following == "past" else 1)
    hour = read_number(lowers, place) if place < len(lowers) else None
    if hour is not None and hour[0].isdecimal() and int(hour[0]) <= _MOST_HOURS:
        return f"{hour[0]}:30", "", hour[1]
    return None


_SPANS = frozenset({"hour", "minute", "week", "month", "year"})  # "one day" is some day
_NAMED = {"dozen": ("12", ""), "fortnight": ("2", "week"), "decade": ("10", "year")}


def _with_half(token: Token, lowers: list[str], index: int) -> _Read:
    """Read "seven and a half" as 7.5."""
    if lowers[index : index + 3] == ["and", "a", "half"] and token.norm.isdecimal():
        return [Token(f"{token.norm}.5", "number", token.surface)], index + 3
    return [token], index


def _ordinal(lowers: list[str], index: int, lexicon: Lexicon) -> tuple[str, int] | None:
    """Read an ordinal; spelled ones count only after a determiner ("the first", not "at first")."""
    determiners = lexicon.classes["determiner"]
    if lowers[index].isalpha() and (index == 0 or lowers[index - 1] not in determiners):
        return None
    return read_ordinal(lowers, index)


def _figure(words: list[Word], index: int) -> _Read:
    """Read digits with their currency sign and the k or th that clings to them."""
    text = words[index].lower
    unit = [Token(_CURRENCIES[text[0]])] if text[0] in _CURRENCIES else []
    value = text.lstrip("".join(_CURRENCIES))
    if "," in value and all(len(part) == len("000") for part in value.split(",")[1:]):
        value = value.replace(",", "")
    after = words[index + 1].lower if index + 1 < len(words) else ""
    if after in {"am", "pm"}:
        return [Token(value, "number", text), Token(after, surface=after)], index + 2
    if after in {"st", "nd", "rd", "th"}:
        return [Token(f"{value}th", "number", text), *unit], index + 2
    scales = _MULTIPLIERS | _MILLIONS if unit else _MULTIPLIERS
    if after in scales and value.isdigit():
        return [Token(str(int(value) * scales[after]), "number", text), *unit], index + 2
    return [Token(value, "number", text), *unit], index + 1
