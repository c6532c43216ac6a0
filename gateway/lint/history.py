"""Conversations that go on after their earlier turns were dropped, changed or summed up. Pure."""

from dataclasses import dataclass
from typing import Literal

from gateway.lint.turn import Turn
from prefix_layer import find_cause, first_edit

GRAM = 3  # characters
MIN_ALIKE = 0.4  # share of common grams by which a message is the same one, edited
SURE_RUN = 4  # turns that two different tasks don't have in common by chance
MIN_RUN = 2  # turns that go on alike make two prompts one conversation


@dataclass(frozen=True, slots=True)
class EditedHistory:
    """What was done to the turns from the first different one on; ``char`` counts in its text."""

    name: Literal["dropped", "summarised", "edited"]
    detail: str
    char: int = 0


@dataclass(frozen=True, slots=True)
class _Continued:
    """``num_kept`` turns of ours stand for ``num_gone`` of theirs; a ``run`` of both follows."""

    at: int
    num_gone: int
    num_kept: int
    run: tuple[Turn, ...]


def edited_history(
    ours: tuple[Turn, ...], theirs: tuple[Turn, ...], at: int
) -> EditedHistory | None:
    """Tell what was done to turn ``at``, if ours goes on as theirs ends; None for a new course."""
    found = _continued(ours, theirs, at)
    if found is None:
        return None
    if found.num_kept == 0 or found.num_gone > 1:
        asked_before = any(turn.role == "user" for turn in ours[:at])
        is_sure = found.num_kept == 0 or asked_before or len(found.run) >= SURE_RUN
        return _left_out(found, theirs[at].role) if is_sure else None
    return _edited(ours, theirs, found)


def _continued(ours: tuple[Turn, ...], theirs: tuple[Turn, ...], at: int) -> _Continued | None:
    keys = [turn.key for turn in ours]
    for gone in range(1, len(theirs) - at):
        for kept in (0, 1):
            run = theirs[at + gone :]
            if keys[at + kept : at + kept + len(run)] == [turn.key for turn in run]:
                return _Continued(at, gone, kept, run)
    return None


def _left_out(found: _Continued, role: str) -> EditedHistory | None:
    is_known = any(turn.role == "assistant" for turn in found.run)
    if len(found.run) < MIN_RUN or not is_known:
        return None
    which = f"{found.num_gone} messages from message {found.at} ({role}) on were"
    if found.num_kept:
        return EditedHistory("summarised", f"{which} put into one")
    return EditedHistory("dropped", f"{which} dropped")


def _edited(
    ours: tuple[Turn, ...], theirs: tuple[Turn, ...], found: _Continued
) -> EditedHistory | None:
    here, cached = ours[found.at], theirs[found.at]
    asked_before = any(turn.role == "user" for turn in ours[: found.at])
    if here.role != cached.role or (len(found.run) < MIN_RUN and not asked_before):
        return None
    which = f"message {found.at} ({here.role})"
    edit, cause = first_edit(here.text, cached.text), find_cause(here.text, cached.text)
    if cause is None or edit is None:
        start = min(len(here.text), len(cached.text))
        return EditedHistory("edited", f"{which} is longer or shorter than it was", start)
    is_sure = asked_before and (here.role != "user" or len(found.run) >= MIN_RUN)
    if not is_sure and not _alike(here.text, cached.text):
        return None
    return EditedHistory("edited", f"{which} was edited: {cause.detail}", edit.start)


def _alike(a: str, b: str) -> bool:
    ours, theirs = ({text[i : i + GRAM] for i in range(len(text) - GRAM + 1)} for text in (a, b))
    return len(ours & theirs) >= MIN_ALIKE * len(ours | theirs)
