"""Names the cause of a difference between a prompt and one that is cached. Pure."""

import unicodedata
from dataclasses import dataclass
from typing import Literal

from prefix_layer.explain.edit import Edit, first_edit
from prefix_layer.explain.order import Order, order_difference
from prefix_layer.explain.volatile import volatile_difference

Cause = Literal[
    "timestamp",
    "uuid",
    "identifier",
    "number",
    "json_key_order",
    "json_format",
    "tool_order",
    "list_order",
    "line_order",
    "unicode_form",
    "whitespace",
    "letter_case",
    "edited_text",
    "never_seen",
]

CONTEXT_CHARS = 48  # beside an edit that tell what it is part of
REGION_CHARS = 50_000  # of both texts around the edit in which order is compared
SHOWN_CHARS = 60

_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys("\u201c\u201d\u300c\u300d\u300e\u300f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u2013\u2014\u2212\u2010\u2011", "-"),
        "\u3002": ".",
        "\u3001": ",",
    }
)
_ORDER_TEXT: dict[Order, str] = {
    "json_key_order": "the same JSON is written with its keys in another order",
    "json_format": "the same JSON is written with other spacing or escapes",
    "tool_order": "the same tools are listed in another order",
    "list_order": "the same items are listed in another order",
    "line_order": "the same lines stand in another order",
}
_VOLATILE_TEXT = {
    "timestamp": "a date or time that changes",
    "uuid": "a UUID that changes",
    "identifier": "a random identifier that changes",
    "number": "a number that changes",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, in words for whoever wrote the prompt.

    ``piece`` is the text here that changes, ``cached`` what stood there before.
    """

    cause: Cause
    detail: str
    piece: str = ""
    cached: str = ""


def find_cause(here: str, cached: str, edit: Edit | None = None) -> Finding | None:
    """Say how a prompt differs from the cached one nearest to it; None when one continues it.

    ``edit`` is their `first_edit`, where it is known already.
    """
    edit = edit or first_edit(here, cached)
    if edit is None:
        return None
    changed = _volatile(here, cached, edit) if edit.resumes else None
    if changed is not None and changed.piece not in cached and changed.cached not in here:
        return changed
    low, high = max(0, edit.start - REGION_CHARS), edit.start + REGION_CHARS
    order = order_difference(here[low:high], cached[low:high], edit.start - low)
    if order is not None:
        return Finding(order, _ORDER_TEXT[order])
    if edit.resumes:
        return changed or _of_edit(edit)
    return Finding("never_seen", f"{_shown(edit.here)} was never seen at this place")


def _volatile(here: str, cached: str, edit: Edit) -> Finding | None:
    before = here[max(0, edit.start - CONTEXT_CHARS) : edit.start]
    ours, theirs = (
        text[edit.start + len(piece) :][:CONTEXT_CHARS]
        for text, piece in ((here, edit.here), (cached, edit.cached))
    )
    changed = f"{before}{edit.here}{ours}"
    differs = volatile_difference(changed, f"{before}{edit.cached}{theirs}")
    differs = differs or volatile_difference(changed, f"{before}{edit.cached}{ours}")
    if differs is None:
        return None
    kind, ours, theirs = differs
    text = f"{_VOLATILE_TEXT[kind]}: {_shown(ours)} here, {_shown(theirs)} in the cached prompt"
    return Finding(kind, text, ours, theirs)


def _of_edit(edit: Edit) -> Finding:
    pair = f"{_shown(edit.here)} here, {_shown(edit.cached)} in the cached prompt"
    ours, theirs = _folded(edit.here), _folded(edit.cached)
    if ours != theirs and _squeezed(edit.here) == _squeezed(edit.cached):
        return Finding("whitespace", f"white space differs: {pair}")
    if _squeezed(ours) == _squeezed(theirs):
        return Finding("unicode_form", f"{_form(edit)}: {pair}")
    if ours.casefold() == theirs.casefold():
        return Finding("letter_case", f"upper and lower case differ: {pair}")
    return Finding("edited_text", f"the text was changed: {pair}")


def _form(edit: Edit) -> str:
    texts = (edit.here, edit.cached)
    if any(unicodedata.category(char) == "Cf" for text in texts for char in text):
        return "an invisible character stands in one of two equal texts"
    if any(unicodedata.east_asian_width(char) in "FW" for text in texts for char in text):
        return "full-width punctuation or characters in one, half-width in the other"
    return "the same characters in another Unicode form (accents, quotes, dashes)"


def _folded(text: str) -> str:
    """Write equal-looking text one way: compatible forms, plain punctuation, nothing invisible."""
    plain = unicodedata.normalize("NFKC", text.translate(_PUNCTUATION))
    return "".join(char for char in plain if unicodedata.category(char) != "Cf")


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _shown(text: str) -> str:
    cut = text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"
    return f'"{cut}"' if text else "nothing"
