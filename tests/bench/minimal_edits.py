"""Make pairs that natural sets lack: one small change that matters, or several that do not."""

import random
import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from semantic_layer.resources import load_lines
from semantic_layer.text.lexicon import Lexicon, english
from semantic_layer.text.stemming import stem
from tests.bench.pair_sets import LabelledPair

_QUALIFIERS = [
    "new",
    "online",
    "free",
    "extended",
    "temporary",
    "private",
    "commercial",
    "remote",
    "international",
    "digital",
    "used",
    "local",
    "portable",
    "joint",
    "annual",
    "partial",
    "internal",
    "external",
    "professional",
    "electric",
    "wireless",
    "advanced",
    "basic",
    "corporate",
    "domestic",
    "rural",
    "urban",
    "medical",
    "student",
    "monthly",
    "weekly",
    "emergency",
    "unpaid",
    "fixed",
    "flexible",
    "shared",
    "expired",
    "refurbished",
]
_OPENINGS = ("Please tell me: ", "Hi, ", "um ", "so ", "Quick question, ", "Hello, ")
_ENDINGS = (" Thanks!", " Thank you!", " please")
_FRAMES = (
    ("How do I", "How can I"),
    ("How do I", "What is the best way to"),
    ("How can I", "What's the way to"),
    ("What is the best way to", "How do I"),
    ("How should I", "How do I"),
    ("How to", "How do I"),
    ("What is", "What's"),
    ("Why do", "What is the reason"),
    ("Can I", "Is it possible to"),
    ("Is it possible to", "Can I"),
)
_FRONTED = re.compile(
    r"(How|What|Where|Why|Is|Are|Can|Do|Does|Which)(.*) (in|at|on|for|near) "
    r"((?:the |my |a )?\w+(?: \w+)?)\?"
)
_NEAREST = 30

Similar = Callable[[str], Sequence[str]]


class Neighbours:
    """Words of like use, by the cosine of their rows in an embedding table ``(words, dim)``."""

    def __init__(self, words: Sequence[str], rows: npt.NDArray[np.float32]) -> None:
        self._words = list(words)
        self._place = {word: i for i, word in enumerate(words)}
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._found: dict[str, list[str]] = {}

    def __call__(self, word: str) -> list[str]:
        """Return the nearest words that are neither inflections nor synonyms."""
        if word not in self._place:
            return []
        if word not in self._found:
            self._found[word] = self._nearest(word)
        return self._found[word]

    def _nearest(self, word: str) -> list[str]:
        likeness = self._rows @ self._rows[self._place[word]]
        lexicon = english()
        found = [self._words[i] for i in np.argsort(-likeness)[1 : 2 * _NEAREST]]
        return [w for w in found if not _is_same(w, word, lexicon)][:_NEAREST]


def changed(text: str, similar: Similar, rng: random.Random) -> LabelledPair | None:
    """Return the text with one content word exchanged, added or moved: another answer."""
    words = text.split(" ")
    places = [i for i, word in enumerate(words) if similar(_core(word).casefold())]
    if not places:
        return None
    at = rng.choice(places)
    kind = rng.random()
    if kind < 0.6:  # shares chosen by hand, see the data statement
        other = rng.choice(similar(_core(words[at]).casefold()))
        is_name = at > 0 and words[at][0].isupper()
        words[at] = words[at].replace(_core(words[at]), other.capitalize() if is_name else other)
    elif kind < 0.85:
        words.insert(at, rng.choice(_QUALIFIERS))
    else:
        there = rng.choice(places)
        one, other = _core(words[at]), _core(words[there])
        words[at], words[there] = words[at].replace(one, other), words[there].replace(other, one)
    result = " ".join(words)
    return None if result.casefold() == text.casefold() else LabelledPair(text, result, same=False)


def retyped(text: str, rng: random.Random) -> LabelledPair | None:
    """Return the text typed differently: case, politeness, a slip, a frame, a synonym, order."""
    result = text
    for _ in range(rng.choice((1, 1, 2))):
        result = rng.choice(_RETYPINGS)(result, rng)
    return None if result == text else LabelledPair(text, result, same=True)


def _slip(text: str, rng: random.Random) -> str:
    at = rng.randrange(3, max(4, len(text) - 3))
    if rng.random() < 0.5:
        return text[:at] + text[at + 1 :]
    return text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]


def _reframed(text: str, rng: random.Random) -> str:
    fitting = [(one, other) for one, other in _FRAMES if text.startswith(one + " ")]
    if not fitting:
        return text
    one, other = rng.choice(fitting)
    return other + text[len(one) :]


def _with_synonym(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    groups = [[m.strip() for m in line.split("|")] for line in load_lines("synonyms.en.txt")]
    choices = [
        (at, member)
        for at, word in enumerate(words)
        for group in groups
        if _core(word).casefold() in group
        for member in group
        if member != _core(word).casefold()
    ]
    if not choices:
        return text
    at, member = rng.choice(choices)
    words[at] = words[at].replace(_core(words[at]), member)
    return " ".join(words)


def _fronted(text: str, rng: random.Random) -> str:
    match = _FRONTED.fullmatch(text)
    if match is None:
        return text
    return f"{match[3].capitalize()} {match[4]}, {match[1].lower()}{match[2]}?"


_RETYPINGS: tuple[Callable[[str, random.Random], str], ...] = (
    lambda text, rng: text.lower(),
    lambda text, rng: text.rstrip("?"),
    lambda text, rng: rng.choice(_OPENINGS) + text[0].lower() + text[1:],
    lambda text, rng: text + rng.choice(_ENDINGS),
    _slip,
    _reframed,
    _reframed,
    _with_synonym,
    _with_synonym,
    _fronted,
)


def _core(word: str) -> str:
    return word.strip("?,.!")


def _is_same(one: str, other: str, lexicon: Lexicon) -> bool:
    return stem(one) == stem(other) or lexicon.are_synonyms(stem(one), stem(other))
