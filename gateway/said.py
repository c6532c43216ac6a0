"""Sentences as they are said in English, with their values apart, so that they can be translated.

Knows no language but English: a translation is a mapping of sentences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with ``{named}`` places for its values; without values, braces are its own."""

    text: str
    values: "Mapping[str, Saying]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Joined:
    """Several sayings one after the other, ``by`` between them."""

    parts: "Sequence[Saying]"
    by: str = "; "


Saying = Said | Joined | str
Translate = Callable[[str], str]


def say(text: str, /, **values: Saying) -> Said:
    """Return a sentence; values are figures and names, or sayings of their own."""
    return Said(text, values)


def untranslated(text: str) -> str:
    """Return a sentence as it is in English."""
    return text


def told(saying: Saying, translate: Translate = untranslated) -> str:
    """Return the whole text, its sentences and what stands between them translated."""
    match saying:
        case Said(text, values) if values:
            shown = {name: told(value, translate) for name, value in values.items()}
            return translate(text).format_map(shown)
        case Said(text, _):
            return translate(text)
        case Joined(parts, by):
            return translate(by).join(told(part, translate) for part in parts)
        case str():
            return saying
