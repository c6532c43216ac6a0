"""Conversations that go on after their earlier turns were dropped, changed or summed up. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

from gateway.lint.pieces import Turn
from gateway.lint.turn import Turns
from gateway.lint.volatile_name import is_asked_for
from prefix_layer import find_cause, first_edit

GRAM = 3  # characters
MIN_ALIKE = 0.4  # share of common grams by which a message is the same one, edited
MIN_REPEATED = 0.6  # share of a message's grams in the summary that repeats it
SURE_RUN = 4  # turns that two different tasks don't have in common by chance
MIN_RUN = 2  # turns that go on alike make two prompts one conversation
SUMMARY_CHARS = 200

_SUMMARY = re.compile(
    r"\bsummar(?:y|ised|ized)\b|\b(?:conversation|discussed|history|talk) so far\b|"
    r"zusammenfassung|zusammengefasst|bisherige[rns]? (?:gespräch|verlauf)|\brésumé\b|\bresumen\b|"
    r"\bresumo\b|\briassunto\b|摘要|总结|總結|概要|要約|요약|резюме|краткое содержание",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EditedHistory:
    """What was done to the turns from the first different one on; ``char`` counts in its text.

    ``num_kept`` turns of ours, none or one, stand for ``num_gone`` of theirs.
    """

    name: Literal["dropped", "summarised", "edited"]
    detail: str
    num_gone: int
    num_kept: int
    char: int = 0


@dataclass(frozen=True, slots=True)
class _Continued:
    """``num_kept`` turns of ours stand for ``num_gone`` of theirs; a ``run`` of both follows."""

    at: int
    num_gone: int
    num_kept: int
    run: tuple[Turn, ...]


def edited_history(here: Turns, cached: Turns, at: int) -> EditedHistory | None:
    """Tell what was done to turn ``at``, if ours goes on as theirs ends; None for a new course."""
    ours, theirs = here.turns, cached.turns
    found = _continued(ours, theirs, at)
    if found is None or not _is_same(found, here, cached):
        return None
    if _is_summed_up(found, here, cached):
        return _left_out(found, cached)
    if found.num_kept == 0 or found.num_gone > 1:
        is_sure = found.num_kept == 0 or _asked(ours[:at]) or len(found.run) >= SURE_RUN
        is_known = any(turn.role == "assistant" for turn in found.run)
        is_run = len(found.run) >= MIN_RUN and is_known
        return _left_out(found, cached) if is_sure and is_run else None
    return _edited(here, cached, found)


def _is_same(found: _Continued, here: Turns, cached: Turns) -> bool:
    """Say whether both are one conversation: agents with other tasks call the same tools.

    What a user said is in both, or the turn of ours is a summary that repeats it, or it is the same
    message, edited.
    """
    kept = here.turns[found.at]
    if found.num_kept == 0 or found.num_gone == 1 or kept.role != "user":
        return True
    if _asked((*here.turns[: found.at], *found.run)):
        return True
    gone = cached.turns[found.at : found.at + found.num_gone]
    said = [turn.text for turn in gone if turn.role == "user"]
    return is_summary(kept) and any(_repeats(kept.text, text) for text in said)


def _asked(turns: tuple[Turn, ...]) -> bool:
    return any(turn.role == "user" for turn in turns)


def _repeats(text: str, part: str) -> bool:
    """Say whether a text holds most of a shorter one's parts."""
    ours, theirs = _grams(text), _grams(part)
    return len(text) > len(part) and len(ours & theirs) >= MIN_REPEATED * len(theirs)


def is_summary(turn: Turn) -> bool:
    """Say whether a message calls itself the summary of a conversation."""
    return _SUMMARY.search(turn.text[:SUMMARY_CHARS]) is not None


def _is_summed_up(found: _Continued, here: Turns, cached: Turns) -> bool:
    gone = cached.turns[found.at : found.at + found.num_gone]
    has_answers = any(turn.role == "assistant" for turn in gone)
    return bool(found.num_kept) and has_answers and is_summary(here.turns[found.at])


def _continued(ours: tuple[Turn, ...], theirs: tuple[Turn, ...], at: int) -> _Continued | None:
    keys = [turn.key for turn in ours]
    for gone in range(1, len(theirs) - at):
        for kept in (0, 1):
            run = theirs[at + gone :]
            if keys[at + kept : at + kept + len(run)] == [turn.key for turn in run]:
                return _Continued(at, gone, kept, run)
    return None


def _left_out(found: _Continued, cached: Turns) -> EditedHistory:
    first = f"{_name(cached, found.at)} ({cached.turns[found.at].role})"
    which = f"the earlier prompt's {found.num_gone} messages from {first} on were"
    if found.num_kept:
        return EditedHistory("summarised", f"{which} put into one", found.num_gone, 1)
    return EditedHistory("dropped", f"{which} dropped", found.num_gone, 0)


def _name(turns: Turns, at: int) -> str:
    return turns.fields[at].removesuffix(".content")


def _edited(here: Turns, cached: Turns, found: _Continued) -> EditedHistory | None:
    ours, theirs = here.turns[found.at], cached.turns[found.at]
    asked_before = _asked(here.turns[: found.at])
    if ours.role != theirs.role or (len(found.run) < MIN_RUN and not asked_before):
        return None
    which = f"{_name(here, found.at)} ({ours.role})"
    edit, cause = first_edit(ours.text, theirs.text), find_cause(ours.text, theirs.text)
    if cause is None or edit is None:
        start = min(len(ours.text), len(theirs.text))
        return EditedHistory("edited", f"{which} is longer or shorter than it was", 1, 1, start)
    if ours.role == "user" and is_asked_for(cause, ours.text, edit.start):
        return None
    is_sure = asked_before and (ours.role != "user" or len(found.run) >= MIN_RUN)
    if not is_sure and not alike(ours.text, theirs.text):
        return None
    return EditedHistory("edited", f"{which} was edited: {cause.detail}", 1, 1, edit.start)


def alike(a: str, b: str) -> bool:
    """Say whether a text may be another one, edited: many of their parts are the same."""
    ours, theirs = _grams(a), _grams(b)
    return len(ours & theirs) >= MIN_ALIKE * len(ours | theirs)


def _grams(text: str) -> set[str]:
    return {text[i : i + GRAM] for i in range(len(text) - GRAM + 1)}
