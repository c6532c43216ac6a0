"""Names why a prompt parts from an earlier one that holds the same text behind. Pure.

The names are those of `prefix_layer.find_cause`, and of what only a conversation tells.
"""

from collections import Counter
from dataclasses import dataclass

from gateway.lint.history import edited_history
from gateway.lint.order import block_order
from gateway.lint.template import template_differs
from gateway.lint.turn import TOOLS, Turn, Turns
from gateway.lint.volatile_name import volatile_name
from prefix_layer import Edit, Finding, find_cause, first_edit

STATIC = ("system", TOOLS, "prompt")
MIN_MOVED = 2
MIN_ID_DIGITS = 4  # a count has fewer
MIN_EXAMPLES = 4
SHOWN_CHARS = 60
MAX_EDIT_CHARS = 80  # of a user's message; more is another content
_TEXTUAL = ("edited_text", "never_seen", "line_order", "list_order")
_COUNTED = ("number", "identifier")  # may be the ranks of chunks


@dataclass(frozen=True, slots=True)
class Judged:
    """A cause and where it begins: the turn, and the character in its text."""

    cause: str
    name: str
    detail: str
    turn: int
    char: int


def judge(here: Turns, cached: Turns) -> Judged | None:
    """Name the cause; None where the prompts are about different things and nothing is wrong."""
    ours, theirs = here.turns, cached.turns
    pairs = enumerate(zip(ours, theirs, strict=False))
    at = next((i for i, (a, b) in pairs if a.key != b.key), None)
    if at is None:
        return None
    a, b = ours[at], theirs[at]
    if (moved := _moved_turns(ours, theirs, at)) is not None:
        return moved
    is_result = a.role == b.role == "tool"
    if is_result or (a.role == b.role and a.role in STATIC):
        inside = _of_texts(a, b, at)
        if not is_result or (inside is not None and inside.cause != "edited_text"):
            return inside
    if (history := edited_history(ours, theirs, at)) is not None:
        return Judged("edited_history", history.name, history.detail, at, history.char)
    return _of_texts(a, b, at) if a.role == b.role and not is_result else None


def _moved_turns(ours: tuple[Turn, ...], theirs: tuple[Turn, ...], at: int) -> Judged | None:
    """Tell turns that stand before the last one in another order."""
    a, b = ([turn.key for turn in turns[at:-1]] for turns in (ours, theirs))
    if len(a) < MIN_MOVED or len(a) != len(b) or Counter(a) != Counter(b):
        return None
    if any(turn.role == "assistant" for turn in ours[at:-1]):
        text = "the same worked examples stand in another order"
        return Judged("few_shot_order", "", text, at, 0) if len(a) >= MIN_EXAMPLES else None
    return Judged("retrieval_order", "", "the same messages stand in another order", at, 0)


def _of_texts(here: Turn, cached: Turn, at: int) -> Judged | None:
    """Name the cause inside one turn."""
    edit = first_edit(here.text, cached.text)
    found = None if edit is None else find_cause(here.text, cached.text, edit)
    if found is None or edit is None:
        return None
    moved = _template(here, cached, found, edit, at) or _order(here, cached, found, edit, at)
    if moved is not None:
        return moved
    if found.cause == "never_seen":
        return None
    if found.cause == "edited_text" and not _is_edited(here, cached, edit):
        return None
    char = edit.start
    if found.piece:
        piece = here.text.find(found.piece, max(0, edit.start - len(found.piece)))
        char = piece if piece >= 0 else char
    name = volatile_name(found.cause, here.text, char, edit)
    cause = "identifier" if found.cause == "number" and _is_id(found.piece, name) else found.cause
    return Judged(cause, name, found.detail, at, char)


def _is_id(piece: str, name: str) -> bool:
    """Tell a number that names something: words say so, or it is long and has letters too."""
    num_digits = sum(map(str.isdigit, piece))
    is_named = name.endswith(" id") or any(map(str.isalpha, piece))
    return num_digits >= MIN_ID_DIGITS and is_named and name not in ("counter", "random seed")


def _template(here: Turn, cached: Turn, found: Finding, edit: Edit, at: int) -> Judged | None:
    if here.role != "prompt" or not template_differs(here.text, cached.text):
        return None
    text = f"the prompts were made by different chat templates: {found.detail}"
    return Judged("template_change", "", text, at, edit.start)


def _order(here: Turn, cached: Turn, found: Finding, edit: Edit, at: int) -> Judged | None:
    if here.role == TOOLS:
        if found.cause in (*_TEXTUAL, *_COUNTED) and _tools_moved(here, cached):
            text = "the same tools are listed in another order"
            return Judged("tool_order", "", text, at, edit.start)
        return None
    if found.cause not in (*_TEXTUAL, *_COUNTED):
        return None
    order = block_order(here.text, cached.text, here.role)
    if order is None or (found.cause in _COUNTED and order[1] > edit.start):
        return None
    text = f"the same blocks stand in another order, from {_shown(here.text, order[1])} on"
    return Judged(order[0], "", text, at, min(order[1], edit.start))


def _tools_moved(here: Turn, cached: Turn) -> bool:
    ours, theirs = here.text.split("\n"), cached.text.split("\n")
    both = set(ours) & set(theirs)
    return [tool for tool in ours if tool in both] != [tool for tool in theirs if tool in both]


def _is_edited(here: Turn, cached: Turn, edit: Edit) -> bool:
    """Tell an edit from another content, such as another chunk at the same rank."""
    is_short = max(len(edit.here), len(edit.cached)) <= MAX_EDIT_CHARS
    return (is_short or here.role in STATIC) and _goes_on(here, cached, edit.start)


def _goes_on(here: Turn, cached: Turn, start: int) -> bool:
    """Say whether at least half of what stands behind an edit in one turn is in the other too."""
    theirs = set(cached.pieces)
    at = behind = alike = 0
    for piece, size in zip(here.pieces, here.sizes, strict=True):
        at += size
        if at > start:
            behind += size
            alike += size if piece in theirs else 0
    return alike * 2 >= behind


def _shown(text: str, start: int) -> str:
    line = text[start:].lstrip().split("\n", 1)[0]
    return f'"{line[:SHOWN_CHARS]}…"' if len(line) > SHOWN_CHARS else f'"{line}"'
