"""Take an English text apart; other space-separated languages get the same, with less insight."""

import re
from dataclasses import dataclass, replace

from semantic_layer.analysis import Analysis, Language, Token
from semantic_layer.frames import find_frame
from semantic_layer.lexicon import Lexicon, english
from semantic_layer.numerals import read_number, read_ordinal
from semantic_layer.script import Payloads
from semantic_layer.stemming import stem

_CHUNK = re.compile(
    r"(?P<mixed>(?<![^\W_])(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]+(?![^\W_]))"
    r"|(?P<number>[$£€¥]?\d+(?:[.,:/-]\d+)*)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*(?:\+\+|\#(?!\w))?)"
    r"|(?P<operator>[+*/^=<>×÷%°]|(?<=\s)-(?=\s|\d))"
    r"|(?P<break>[,;:.!?()](?=\s|$))"
    r"|(?P<symbol>[\u2190-\u2bff\u3200-\u33ff\U0001f000-\U0001faff])"
)
_PART = re.compile(r"\d+|[^\W\d_]+")
_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "¥": "yen"}
_OPERATORS = {"×": "*", "÷": "/", "%": "percent", "°": "degree"}
_MULTIPLIERS = {"k": 1_000, "m": 1_000_000, "bn": 10**9}
_TIMES = {"morning": "am", "afternoon": "pm", "evening": "pm"}


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as read: ``lower`` is compared, ``surface`` keeps the case."""

    lower: str
    surface: str
    starts: bool = False  # begins a sentence, so a capital says nothing
    after_break: bool = False
    owns: bool = False  # had a possessive 's


def analyse_english(text: str, payloads: Payloads, language: Language = "en") -> Analysis:
    """Take a text apart by English rules."""
    lexicon = english()
    words = _without_fillers(_read(payloads.rest, lexicon), lexicon)
    lowers = [word.lower for word in words]
    starts = [i for i, word in enumerate(words) if word.starts or word.after_break]
    frame, used = find_frame(lowers, starts)
    kept = [word for i, word in enumerate(words) if i not in used]
    classes = lexicon.classes
    tokens = tuple(_paired(_tokens(kept, lexicon)))
    return Analysis(
        text=text,
        language=language,
        tokens=tokens,
        frame=frame,
        modal=_modal(lowers, frame, lexicon),
        tense=_first_class(lowers, ("past", "future"), lexicon) or "present",
        num_negations=sum(lower in classes["negation"] for lower in lowers),
        owners=frozenset(
            person for person, words_ in _OWNERS.items() if not words_.isdisjoint(lowers)
        ),
        persons=frozenset(
            person
            for person in ("first", "second", "third_m", "third_f", "third_p")
            if not classes[person].isdisjoint(lowers)
        ),
        codes=payloads.codes,
        quotes=payloads.quotes,
        marks=frozenset(
            token.norm
            for token in tokens
            if token.norm in lexicon.sets or token.norm in lexicon.opposites
        ),
    )


_OWNERS = {
    "first": frozenset({"my", "our", "mine", "ours"}),
    "second": frozenset({"your", "yours"}),
    "third_m": frozenset({"his"}),
    "third_f": frozenset({"her", "hers"}),
    "third_p": frozenset({"their", "theirs"}),
}


def _read(text: str, lexicon: Lexicon) -> list[_Word]:
    """Split into words with contractions written out; hyphens are spaces."""
    words: list[_Word] = []
    starts, after_break = True, False
    for match in _CHUNK.finditer(text):
        chunk = match[0]
        if match["break"]:
            starts = starts or chunk in ".!?:"
            after_break = True
            continue
        for part in _parts(chunk, lexicon) if match["mixed"] else _expand(chunk, lexicon):
            words.append(replace(part, starts=starts, after_break=after_break))
            starts = after_break = False
    return words


def _parts(chunk: str, lexicon: Lexicon) -> list[_Word]:
    """Divide letters from digits ("100ml"), unless together they are a word we know ("2FA")."""
    if lexicon.knows(chunk.casefold()):
        return [_Word(chunk.casefold(), chunk)]
    return [_Word(part.casefold(), part) for part in _PART.findall(chunk)]


def _expand(chunk: str, lexicon: Lexicon) -> list[_Word]:
    lower = chunk.casefold()
    if lower in lexicon.contractions:
        return [_Word(word, word) for word in lexicon.contractions[lower]]
    for ending in ("n't", "'m", "'re", "'ve", "'ll", "'d"):
        if lower.endswith(ending) and len(lower) > len(ending):
            rest = chunk[: -len(ending)]
            expanded = lexicon.contractions[ending][0]
            return [_Word(rest.casefold(), rest), _Word(expanded, expanded)]
    if lower.endswith("'s"):
        rest = chunk[:-2]
        if rest.casefold() in _IS_BEFORE:
            return [_Word(rest.casefold(), rest), _Word("is", "is")]
        return [_Word(rest.casefold(), rest, owns=True)]
    if lower.endswith("'"):
        return [_Word(lower[:-1], chunk[:-1], owns=True)]
    return [_Word(lower, chunk)]


_IS_BEFORE = frozenset(
    "what who where when how why that there here it he she let which this".split()
)


def _without_fillers(words: list[_Word], lexicon: Lexicon) -> list[_Word]:
    """Drop politeness and hesitation; a capital after it still says nothing."""
    fillers = lexicon.classes["filler"]
    kept: list[_Word] = []
    starts = False
    for i, word in enumerate(words):
        starts = starts or word.starts
        if word.lower in fillers and not _means_something(words, i):
            continue
        kept.append(replace(word, starts=starts))
        starts = False
    return kept


def _means_something(words: list[_Word], i: int) -> bool:
    """Say whether a word that is a filler elsewhere carries meaning here."""
    before = words[i - 1].lower if i else ""
    after = words[i + 1].lower if i + 1 < len(words) else ""
    match words[i].lower:
        case "like":
            return not (before in {"i", "do", "so", "is", "um", "uh"} or after in {"increase"})
        case "well":
            return i > 0 and not words[i].starts
        case "so":
            return i > 0 and not words[i].starts
        case "one":
            return before != "quick"
        case "question" | "quick":
            return i > 2  # noqa: PLR2004  # only an opening says "quick question"
        case "hey" | "hi" | "hello" | "yes" | "no" | "thanks" | "thank" | "sorry" | "dear":
            return 0 < i < len(words) - 2 and not words[i].starts and not words[i].after_break
        case "many":
            return after != "thanks"
        case "excuse":
            return after != "me"
        case _:
            return False


def _modal(lowers: list[str], frame: str, lexicon: Lexicon) -> str:
    """Name the modal; "can" means nothing where a way, a place or a time is asked for."""
    modal = _first_class(lowers, ("should", "must", "can"), lexicon)
    return "" if modal == "can" and frame not in {"yesno", ""} else modal


def _first_class(lowers: list[str], names: tuple[str, ...], lexicon: Lexicon) -> str:
    for name in names:
        if not lexicon.classes[name].isdisjoint(lowers):
            return name
    return ""


def _tokens(words: list[_Word], lexicon: Lexicon) -> list[Token]:
    tokens: list[Token] = []
    lowers = [word.lower for word in words]
    index = 0
    while index < len(words):
        made, index = _token_at(words, lowers, index, lexicon)
        tokens += made
    return tokens


def _token_at(
    words: list[_Word], lowers: list[str], index: int, lexicon: Lexicon
) -> tuple[list[Token], int]:
    """Read the token at ``index``: a phrase, a number or a word; give the next index too."""
    word = words[index]
    for phrase in lexicon.phrases.get(word.lower, ()):
        if tuple(lowers[index : index + len(phrase)]) == phrase:
            return [Token(" ".join(phrase), free=word.after_break)], index + len(phrase)
    if lexicon.knows(word.lower) and not word.lower.isalpha() and word.lower.isalnum():
        return [Token(word.lower, surface=word.surface)], index + 1
    if (ordinal := _ordinal(lowers, index)) is not None:
        return [Token(ordinal, "number", word.surface)], index + 1
    if (spelled := read_number(lowers, index)) is not None:
        return [Token(spelled[0], "number", word.surface)], spelled[1]
    if word.lower[0].isdigit() or word.lower[0] in _CURRENCIES:
        return _figure(words, index)
    return _plain_word(word, lowers, index, lexicon), index + 1


def _ordinal(lowers: list[str], index: int) -> str | None:
    """Read an ordinal; spelled ones count only after a determiner ("the first", not "at first")."""
    if lowers[index].isalpha() and (index == 0 or lowers[index - 1] not in _DETERMINERS):
        return None
    return read_ordinal(lowers[index])


_DETERMINERS = frozenset("the my your his her our their a an its".split())


def _figure(words: list[_Word], index: int) -> tuple[list[Token], int]:
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
    if after in _MULTIPLIERS and value.isdigit():
        return [Token(str(int(value) * _MULTIPLIERS[after]), "number", text), *unit], index + 2
    return [Token(value, "number", text), *unit], index + 1


def _plain_word(word: _Word, lowers: list[str], index: int, lexicon: Lexicon) -> list[Token]:
    lower, classes = word.lower, lexicon.classes
    if lower in _OPERATORS or not lower[0].isalpha():
        return [Token(_OPERATORS.get(lower, lower), surface=lower)]
    if lower in _TIMES and lowers[max(0, index - 2) : index] == ["in", "the"]:
        return [Token(_TIMES[lower], surface=lower)]
    if lower in classes["preposition"]:
        return [Token(lower, "link", lower, free=word.after_break)]
    if lower in classes["negation"]:
        return [Token(lower, "link", lower)]
    if lower in classes["stop"]:
        return [Token("&", "link")] if lower in {"and", "or"} else []
    return [
        Token(
            stem(lower),
            surface=word.surface,
            name=word.surface[0].isupper() and not word.starts,
            weak=lower in classes["weak"] or stem(lower) in classes["weak"],
            free=word.after_break or lower in classes["temporal"],
        )
    ]


def _paired(tokens: list[Token]) -> list[Token]:
    """Put the two sides of an "and" or "or" in a fixed order: "A and B" is "B and A"."""
    out = list(tokens)
    for i in range(1, len(out) - 1):
        one, link, other = out[i - 1 : i + 2]
        if link == Token("&", "link") and one.kind == other.kind == "word":
            out[i - 1], out[i + 1] = sorted((one, other), key=lambda token: token.norm)
    return [token for token in out if token != Token("&", "link")]
