"""Names why a prompt parts from an earlier one that holds the same text behind. Pure.

The names are those of `prefix_layer.find_cause`, and of what only a conversation tells.
"""

from collections import Counter
from dataclasses import dataclass, replace

from gateway.lint.elements import listed_elements
from gateway.lint.history import EditedHistory, alike, edited_history, is_summary
from gateway.lint.order import block_order, cut_elements, cut_paragraphs
from gateway.lint.pieces import Turn
from gateway.lint.template import template_differs
from gateway.lint.turn import TOOLS, Turns
from gateway.lint.volatile_name import is_asked_for, is_labelled_number, volatile_name
from prefix_layer import Edit, Finding, find_cause, first_edit

STATIC = ("system", TOOLS, "prompt")
MIN_MOVED = 2
MIN_ID_DIGITS = 4  # a count has fewer
MIN_EXAMPLES = 4
SHOWN_CHARS = 60
MAX_EDIT_CHARS = 80  # of a user's message; more is another content
_TEXTUAL = ("edited_text", "never_seen", "line_order", "list_order")
_COUNTED = ("number", "identifier")  # may be the ranks of chunks
_SAID_ANEW = ("number", "edited_text")  # of an answer: another answer


@dataclass(frozen=True, slots=True)
class Judged:
    """A cause and where it begins: the turn, and the character in its text.

    In the turn, ``piece`` stands where ``cached`` stood before; of ``turns``, the first stand in
    the earlier prompt where the second stand here.
    """

    cause: str
    name: str
    detail: str
    turn: int
    char: int
    piece: str = ""
    cached: str = ""
    turns: tuple[int, int] | None = None


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
    history = edited_history(here, cached, at)
    if history is not None and history.name == "summarised":
        return _history(history, at)
    if at and a.role in ("system", "assistant") and is_summary(a) and is_summary(b):
        return None
    return _of_turn(a, b, at, history)


def _of_turn(a: Turn, b: Turn, at: int, history: EditedHistory | None) -> Judged | None:
    """Name the cause where turn ``at`` differs: in its text, or in what became of it."""
    is_result = a.role == b.role == "tool"
    if is_result or (a.role == b.role and a.role in STATIC):
        inside = _of_texts(a, b, at)
        if not is_result or (inside is not None and inside.cause != "edited_text"):
            return inside
    if history is not None:
        return _history(history, at)
    return _of_texts(a, b, at) if a.role == b.role and not is_result else None


def _history(history: EditedHistory, at: int) -> Judged:
    which = (history.num_gone, history.num_kept)
    return Judged("edited_history", history.name, history.detail, at, history.char, turns=which)


def _moved_turns(ours: tuple[Turn, ...], theirs: tuple[Turn, ...], at: int) -> Judged | None:
    """Tell turns that stand before the last one in another order."""
    a, b = ([turn.key for turn in turns[at:-1]] for turns in (ours, theirs))
    if len(a) < MIN_MOVED or len(a) != len(b) or Counter(a) != Counter(b):
        return None
    if any(turn.role == "assistant" for turn in ours[at:-1]):
        text = "the same worked examples stand in another order"
        shots = Judged("few_shot_order", "", text, at, 0, turns=(len(a), len(a)))
        return shots if len(a) >= MIN_EXAMPLES else None
    text = "the same messages stand in another order"
    return Judged("retrieval_order", "", text, at, 0, turns=(len(a), len(a)))


def _of_texts(here: Turn, cached: Turn, at: int) -> Judged | None:
    """Name the cause inside one turn."""
    edit = first_edit(here.text, cached.text)
    found = None if edit is None else find_cause(here.text, cached.text, edit)
    if found is None or edit is None:
        return None
    if found.cause == "edited_text" and (line := _first_line(edit)) is not None:
        in_line = find_cause(here.text, cached.text, line)
        if in_line is not None and in_line.cause != "edited_text":
            found, edit = in_line, line
    moved = _template(here, cached, found, edit, at) or _order(here, cached, found, edit, at)
    if moved is not None or _is_other_document(here, cached, found, edit):
        return moved
    if found.cause == "never_seen" or (here.role == "assistant" and found.cause in _SAID_ANEW):
        return None
    if found.cause == "edited_text" and not _is_edited(here, cached, edit):
        return None
    char = edit.start
    if found.piece:
        piece = here.text.find(found.piece, max(0, edit.start - len(found.piece)))
        char = piece if piece >= 0 else char
    if here.role == "user" and is_asked_for(found, here.text, char):
        return None
    of_number = is_labelled_number(found, here.text, char)
    cause: str = "number" if of_number else found.cause
    name = volatile_name(cause, here.text, char, edit)
    cause = "identifier" if cause == "number" and _is_id(found.piece, name) else cause
    pair = (edit.here, edit.cached) if edit.resumes else ("", "")
    if found.piece:
        pair = (found.piece, found.cached)
    return Judged(cause, name, found.detail, at, char, *pair)


def _first_line(edit: Edit) -> Edit | None:
    """Return what differs in the first of as many lines; None where it is one."""
    ours, theirs = edit.here.split("\n"), edit.cached.split("\n")
    is_sure = edit.resumes and len(ours) == len(theirs) > 1 and ours[0] != theirs[0]
    return replace(edit, here=ours[0], cached=theirs[0]) if is_sure else None


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


def _is_other_document(here: Turn, cached: Turn, found: Finding, edit: Edit) -> bool:
    """Say whether a marked-up document stands where another one stood."""
    listed = listed_elements(here.text) if found.cause in (*_TEXTUAL, *_COUNTED) else []
    is_in_list = listed and listed[0].start <= edit.start <= listed[-1].end
    return bool(is_in_list and listed_elements(cached.text)) and _is_other_block(here, cached, edit)


def _tools_moved(here: Turn, cached: Turn) -> bool:
    ours, theirs = here.text.split("\n"), cached.text.split("\n")
    both = set(ours) & set(theirs)
    return [tool for tool in ours if tool in both] != [tool for tool in theirs if tool in both]


def _is_edited(here: Turn, cached: Turn, edit: Edit) -> bool:
    """Tell an edit from another content, such as another chunk at the same rank."""
    is_short = max(len(edit.here), len(edit.cached)) <= MAX_EDIT_CHARS
    if here.role not in STATIC and (not is_short or _is_other_block(here, cached, edit)):
        return False
    return _goes_on(here, cached, edit.start)


def _is_other_block(here: Turn, cached: Turn, edit: Edit) -> bool:
    """Say whether a paragraph or marked-up document stands where another one stood.

    Another one was put in or left out there, goes on otherwise behind the edit, or is all new.
    """
    ours, a, behind_a = _block_at(here.text, edit.start, edit.here)
    theirs, b, behind_b = _block_at(cached.text, edit.start, edit.cached)
    is_shifted = len(ours) > 1 and (a in theirs or b in ours)
    return is_shifted or (edit.resumes and behind_a != behind_b) or not alike(a, b)


def _block_at(text: str, start: int, part: str) -> tuple[set[str], str, str]:
    """Return the blocks of a text, the one at a place, and what it holds behind a part there."""
    blocks, gaps = cut_elements(text)
    if len(blocks) == 1:
        blocks, gaps = cut_paragraphs(text)
    end = 0
    for block, gap in zip(blocks, [*gaps, ""], strict=True):
        end += len(block)
        if start < end + len(gap):
            return set(blocks), block, text[start + len(part) : end]
        end += len(gap)
    return set(blocks), blocks[-1], ""


def _goes_on(here: Turn, cached: Turn, start: int) -> bool:
    """Say whether at least half of what stands behind an edit in one turn is in the other too."""
    theirs = set(cached.pieces)
    at = behind = same = 0
    for piece, size in zip(here.pieces, here.sizes, strict=True):
        at += size
        if at > start:
            behind += size
            same += size if piece in theirs else 0
    return same * 2 >= behind


def _shown(text: str, start: int) -> str:
    line = text[start:].lstrip().split("\n", 1)[0]
    return f'"{line[:SHOWN_CHARS]}…"' if len(line) > SHOWN_CHARS else f'"{line}"'
