"""What a text says, in the form two texts are compared in. Pure."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["word", "number", "link"]
Language = Literal["en", "zh", "other"]
Role = Literal["", "subject", "object"]


@dataclass(frozen=True, slots=True)
class Token:
    """One thing said.

    ``norm`` is what is compared. A ``link`` is a word that only ties others together (a
    preposition): its place matters, its absence does not. ``name`` marks a capital inside a
    sentence, ``weak`` a word that adds little ("city" in "which city"), ``free`` one that may
    stand elsewhere: it follows a comma, or is a word of time.
    """

    norm: str
    kind: Kind = "word"
    surface: str = ""
    name: bool = False
    weak: bool = False
    free: bool = False


@dataclass(frozen=True, slots=True)
class Analysis:
    """One text, taken apart.

    ``frame`` is what kind of thing is asked (how, why, when …, yes-no), ``modal`` how (can, should,
    must). ``codes`` are code, URLs and addresses; ``quotes`` the quoted texts, whose words are
    tokens too. ``owners`` are persons of possessives, ``persons`` those of subjects and objects,
    ``roles`` the same in the order in which they come. ``role_asked`` tells "who saw him" (subject)
    from "whom did he see"; ``is_passive`` that something is done by someone. ``marks`` are the
    words of sets and opposites that the text contains.
    """

    text: str
    language: Language
    tokens: tuple[Token, ...]
    frame: str = ""
    modal: str = ""
    tense: str = "present"
    num_negations: int = 0
    owners: frozenset[str] = frozenset()
    persons: frozenset[str] = frozenset()
    roles: tuple[str, ...] = ()
    role_asked: Role = ""
    is_passive: bool = False
    codes: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    marks: frozenset[str] = frozenset()

    @property
    def content(self) -> tuple[Token, ...]:
        """The tokens that carry meaning by themselves."""
        return tuple(token for token in self.tokens if token.kind != "link")

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numbers, sorted."""
        return tuple(sorted(token.norm for token in self.tokens if token.kind == "number"))


@lru_cache(maxsize=16_384)  # 2 kB a question: those of 10,000 entries are read once
def analyse(text: str) -> Analysis:
    """Take a text apart by the rules of its language."""
    from semantic_layer.text.chinese import analyse_chinese  # noqa: PLC0415
    from semantic_layer.text.english import analyse_english  # noqa: PLC0415
    from semantic_layer.text.script import language_of, normalise, take_payloads  # noqa: PLC0415

    payloads = take_payloads(normalise(text))
    language = language_of(payloads.rest)
    if language == "zh":
        return analyse_chinese(text, payloads)
    return analyse_english(text, payloads, language)
