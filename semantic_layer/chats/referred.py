"""The request of a chat as one text: its last message after what that refers to. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of

_MOST_CHARS = {"en": 230, "zh": 90, "other": 150}


def resolved(text: str, said: Sequence[str], wanted: Iterable[str]) -> str:
    """Put lines that were said before a message, in their order.

    When not all have room, the first of them and those with most words of ``wanted`` have.
    """
    aim = words_of_lines(wanted) | words_of_lines([text])
    left = _MOST_CHARS[language_of(text)] - len(text)
    ranked = sorted(
        range(len(said)), key=lambda i: (i > 0, -len(words_of_lines([said[i]]) & aim), -i)
    )
    chosen = []
    for i in ranked:
        if len(said[i]) <= left:
            chosen.append(i)
            left -= len(said[i])
    return " ".join([*(said[i] for i in sorted(chosen)), text])


def words_of_lines(lines: Iterable[str]) -> frozenset[str]:
    """Return the telling words of lines."""
    return frozenset().union(*map(_words_of, lines))


@lru_cache(maxsize=16_384)
def _words_of(line: str) -> frozenset[str]:
    return frozenset(token.norm for token in analyse(line).content if not token.weak)
