"""Take an English text apart; other space-separated languages get the same, with less insight."""

from dataclasses import replace
from itertools import pairwise

from semantic_layer.text.analysis import Analysis, Language, Role, Token
from semantic_layer.text.english_numbers import number_at
from semantic_layer.text.english_words import Word, read_words
from semantic_layer.text.frames import find_frame
from semantic_layer.text.lexicon import Lexicon, english
from semantic_layer.text.script import Payloads
from semantic_layer.text.stemming import stem

_OPERATORS = {"×": "*", "÷": "/", "%": "percent", "°": "degree"}
_AND = Token("&", "link")
_TIMES = {"morning": "am", "afternoon": "pm", "evening": "pm"}


def analyse_english(text: str, payloads: Payloads, language: Language = "en") -> Analysis:
    """Take a text apart by English rules."""
    lexicon = english()
    words = _without_request(read_words(payloads.rest, lexicon), lexicon)
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
        tense=_tense(lowers, frame, lexicon),
        num_negations=sum(lower in classes["negation"] for lower in lowers),
        owners=_persons(lowers, "owner_", lexicon),
        persons=_persons(lowers, "", lexicon),
        roles=_roles([word.lower for word in kept], lexicon),
        role_asked=_role_asked(frame, lowers, lexicon),
        is_passive="by" in lowers[:-1] and not classes["be"].isdisjoint(lowers),
        codes=payloads.codes,
        quotes=payloads.quotes,
        marks=frozenset(
            norm
            for norm in (*(token.norm for token in tokens), *_pointers(kept, lexicon))
            if norm in lexicon.sets or norm in lexicon.opposites
        ),
    )


def _pointers(words: list[Word], lexicon: Lexicon) -> list[str]:
    """Return the words that point or count but are no tokens ("this", "some")."""
    return [stem(word.lower) for word in words if word.lower in lexicon.classes["linked"]]


def _persons(lowers: list[str], prefix: str, lexicon: Lexicon) -> frozenset[str]:
    return frozenset(
        person for person in _PERSONS if not lexicon.classes[prefix + person].isdisjoint(lowers)
    )


def _roles(lowers: list[str], lexicon: Lexicon) -> tuple[str, ...]:
    """Name the persons in the order in which they come, each once."""
    found = (person for lower in lowers for person in _ACTORS if lower in lexicon.classes[person])
    return tuple(dict.fromkeys(found))


def _without_request(words: list[Word], lexicon: Lexicon) -> list[Word]:
    """Read "can you suggest" as "suggest"."""
    lowers = [word.lower for word in words[: len(_CAN_YOU) + 1]]
    asks = len(lowers) > len(_CAN_YOU) and lowers[0] in _CAN_YOU[0] and lowers[1] == _CAN_YOU[1]
    if asks and lowers[-1] in lexicon.classes["request"]:
        return [replace(words[2], starts=True), *words[3:]]
    return words


_CAN_YOU = (frozenset({"can", "could", "would", "will"}), "you")


def _role_asked(frame: str, lowers: list[str], lexicon: Lexicon) -> Role:
    """Tell "whom did he see" from "who saw him"."""
    if frame not in _ASKING_A_THING or "how" in lowers:
        return ""
    if not _DOES.isdisjoint(lowers):
        return "object"
    return "subject" if lexicon.classes["be"].isdisjoint(lowers) else ""


_ASKING_A_THING = frozenset({"who", "what", "which"})
_DOES = frozenset({"do", "does", "did"})
_PERSONS = ("first", "second", "third_m", "third_f", "third_p")
_ACTORS = (*_PERSONS, "third_s")


def _modal(lowers: list[str], frame: str, lexicon: Lexicon) -> str:
    """Name the modal; "can" means nothing where a way, a place or a time is asked for."""
    modal = _first_class(lowers, ("should", "must", "can"), lexicon)
    if not modal and frame == "yesno" and not _HAVE_TO.isdisjoint(pairwise(lowers)):
        return "must"
    return "" if modal == "can" and frame not in {"yesno", ""} else modal


_HAVE_TO = frozenset({("have", "to"), ("need", "to"), ("has", "to"), ("needs", "to")})


def _tense(lowers: list[str], frame: str, lexicon: Lexicon) -> str:
    pairs = set(pairwise(lowers))
    if ("going", "to") in pairs:
        return "future"
    tense = _first_class(lowers, ("past", "future"), lexicon) or "present"
    is_general = (frame == "howlong" and "take" in lowers) or "not" in lowers
    return "present" if tense == "future" and is_general and frame != "yesno" else tense


def _first_class(lowers: list[str], names: tuple[str, ...], lexicon: Lexicon) -> str:
    for name in names:
        if not lexicon.classes[name].isdisjoint(lowers):
            return name
    return ""


def _tokens(words: list[Word], lexicon: Lexicon) -> list[Token]:
    tokens: list[Token] = []
    lowers = [word.lower for word in words]
    index = 0
    while index < len(words):
        made, index = _token_at(words, lowers, index, lexicon)
        tokens += made
    return tokens


def _token_at(
    words: list[Word], lowers: list[str], index: int, lexicon: Lexicon
) -> tuple[list[Token], int]:
    """Read the token at ``index``: a phrase, a number or a word; give the next index too."""
    word = words[index]
    for phrase in lexicon.phrases.get(word.lower, ()):
        if tuple(lowers[index : index + len(phrase)]) == phrase:
            said = " ".join(phrase)
            name, surface = lexicon.places.get(said, (said, ""))
            surface = surface.title() if word.surface[0].isupper() else surface
            token = Token(name, surface=surface, name=bool(surface), free=word.after_break)
            return [token], index + len(phrase)
    if lexicon.knows(word.lower) and not word.lower.isalpha() and word.lower.isalnum():
        return [Token(word.lower, surface=word.surface)], index + 1
    if (number := number_at(words, lowers, index, lexicon)) is not None:
        return number
    return _plain_word(word, lowers, index, lexicon), index + 1


def _plain_word(word: Word, lowers: list[str], index: int, lexicon: Lexicon) -> list[Token]:
    lower, classes = word.lower, lexicon.classes
    if not word.shouts:
        grammar = _grammar_word(word, lowers, index, lexicon)
        if grammar is not None:
            return grammar
    norm = stem(lower)
    is_name = word.surface[0].isupper() and not word.starts
    surface = word.surface
    if norm in lexicon.places and (is_name or lower not in classes["stop"]):
        name, written = lexicon.places[norm]
        if name != norm:
            norm, surface = name, written.title() if is_name else written
    return [
        Token(
            norm,
            surface=surface,
            name=is_name,
            weak=lower in classes["weak"] or norm in classes["weak"],
            free=word.after_break or lower in classes["temporal"],
        )
    ]


def _grammar_word(
    word: Word, lowers: list[str], index: int, lexicon: Lexicon
) -> list[Token] | None:
    """Read an operator, a link or a stop word; None for words with a meaning of their own."""
    lower, classes = word.lower, lexicon.classes
    before, is_last = lowers[index - 1] if index else "", index == len(lowers) - 1
    token: Token | None = None
    if lower in _OPERATORS or not lower[0].isalpha():
        token = Token(_OPERATORS.get(lower, lower), surface=lower)
    elif lower in _TIMES and lowers[max(0, index - 2) : index] == ["in", "the"]:
        token = Token(_TIMES[lower], surface=lower)
    elif lower in classes["preposition"] and not (is_last and lower in _TELLING_LAST):
        token = Token(_SAME_LINKS.get(lower, lower), "link", lower, free=word.after_break)
    elif lower in classes["negation"] or lower in classes["clause"]:
        token = Token(stem(lower), "link", lower)
    elif (lower in _OBJECTS and before in classes["preposition"]) or lower in classes["second_ask"]:
        token = Token(lower, surface=lower, weak=True)
    elif lower in {"and", "or"}:
        token = _AND
    elif lower in classes["stop"]:
        return None if lower == "do" and (is_last or before == "to") else []
    return None if token is None else [token]


_SAME_LINKS = {"into": "to", "onto": "on", "upon": "on", "till": "until", "towards": "toward"}
_TELLING_LAST = frozenset({"for", "in"})
_OBJECTS = frozenset({"me", "you", "him", "her", "us", "them"})


def _paired(tokens: list[Token]) -> list[Token]:
    """Put the two sides of an "and" or "or" in a fixed order: "A and B" is "B and A"."""
    out = list(tokens)
    for i in range(1, len(out) - 1):
        one, link, other = out[i - 1 : i + 2]
        before = out[i - 2] if i > 1 else link
        is_phrase = before.kind == "word" and not before.norm.endswith(" between")
        if link == _AND and one.kind == other.kind == "word" and not is_phrase:
            out[i - 1], out[i + 1] = sorted((one, other), key=lambda token: token.norm)
    return [token for token in out if token != _AND]
