"""A prompt as it would be without one of its faults, so that the next one shows. Pure.

What an earlier prompt holds stands in place of what differs from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from gateway.lint.elements import split_tag
from gateway.lint.json_survey import canonical_text, json_values
from gateway.lint.judge import Judged
from gateway.lint.order import CUTS, Cut, split_rank
from gateway.lint.pieces import Turn
from gateway.lint.turn import TOOLS, Turns

ORDERS = ("retrieval_order", "few_shot_order", "line_order", "list_order")
KEYED = ("json_key_order", "json_format")

Make = Callable[[str, str], Turn]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a turn stands in the request; None: nowhere.

    ``shifts`` tell of each change to its text from which character on the text had stood how much
    further on, in the order of the changes.
    """

    turn: int | None
    shifts: tuple[tuple[int, int], ...] = ()

    def char(self, at: int) -> int:
        """Return where in the request's text a character stood."""
        for start, shift in reversed(self.shifts):
            at += shift if at > start else 0
        return max(0, at)


@dataclass(frozen=True, slots=True)
class Grafted:
    """A prompt, and for each of its turns where it comes from."""

    turns: Turns
    origins: tuple[Origin, ...]

    def original(self, judged: Judged) -> Judged | None:
        """Return a judgement in the places of the request; None for what is not in it."""
        origin = self.origins[judged.turn]
        if origin.turn is None:
            return None
        return replace(judged, turn=origin.turn, char=origin.char(judged.char))


def ungrafted(turns: Turns) -> Grafted:
    """Return a request as it is."""
    return Grafted(turns, tuple(Origin(at) for at in range(len(turns.turns))))


def graft(prompt: Grafted, cached: Turns, judged: Judged, make: Make) -> Grafted | None:
    """Return the prompt without the fault; None where that can't be told."""
    ours, at = prompt.turns, judged.turn
    if judged.turns is not None:
        gone, kept = judged.turns
        turns = (*cached.turns[: at + gone], *ours.turns[at + kept :])
        fields = (*cached.fields[: at + gone], *ours.fields[at + kept :])
        new = (*prompt.origins[:at], *[Origin(None)] * gone, *prompt.origins[at + kept :])
        return Grafted(Turns(turns, fields), new)
    turn, theirs = ours.turns[at], cached.turns[at]
    text = _mended(turn, theirs, judged)
    if text is None or text == turn.text:
        return None
    origin = prompt.origins[at]
    shift = (judged.char, len(turn.text) - len(text))
    moved = Origin(origin.turn, (*origin.shifts, shift))
    turns = (*ours.turns[:at], make(turn.role, text), *ours.turns[at + 1 :])
    return Grafted(
        Turns(turns, ours.fields), (*prompt.origins[:at], moved, *prompt.origins[at + 1 :])
    )


def _mended(here: Turn, cached: Turn, judged: Judged) -> str | None:
    if judged.cause == "tool_order" and here.role == TOOLS:
        return _in_order(here.text.split("\n"), cached.text.split("\n"))
    if judged.cause in ORDERS:
        moved = (_moved(here.text, cached.text, cut) for cut in CUTS)
        return next((text for text in moved if text is not None), None)
    if judged.cause in KEYED:
        return _rewritten(here.text, cached.text)
    if judged.piece or judged.cached:
        end = judged.char + len(judged.piece)
        return here.text[: judged.char] + judged.cached + here.text[end:]
    return cached.text if here.bag is not None and here.bag == cached.bag else None


def _in_order(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """List tools as the earlier prompt does, by their names; those it has not come last."""
    places = {_tool_name(tool): at for at, tool in reversed(list(enumerate(theirs)))}
    return "\n".join(sorted(ours, key=lambda tool: places.get(_tool_name(tool), len(places))))


def _tool_name(tool: str) -> str:
    read = msgspec.json.decode(tool)
    function = read.get("function", read)
    return str(function.get("name", tool)) if isinstance(function, dict) else tool


def _moved(here: str, cached: str, cut: Cut) -> str | None:
    """Put blocks that both hold into the order of the earlier prompt; ranks stay in place."""
    blocks, gaps = cut(here)
    theirs = cut(cached)[0]
    named = {block for block in theirs if split_tag(block) is not None}
    parts = [("", block) if block in named else split_rank(block) for block in blocks]
    order = {split_rank(block)[1].strip(): at for at, block in enumerate(theirs)}
    order |= {block: at for at, block in enumerate(theirs) if block in named}
    places = [at for at, (_, plain) in enumerate(parts) if plain.strip() in order]
    ordered = sorted((parts[at][1] for at in places), key=lambda plain: order[plain.strip()])
    if ordered == [parts[at][1] for at in places]:
        return None
    for at, plain in zip(places, ordered, strict=True):
        parts[at] = (parts[at][0], plain)
    gaps = [*gaps, ""]
    return "".join(rank + plain + gap for (rank, plain), gap in zip(parts, gaps, strict=True))


def _rewritten(here: str, cached: str) -> str:
    """Write each JSON value that both hold as the earlier prompt does."""
    written = {canonical_text(value): text for value, text in json_values(cached)}
    done: list[str] = []
    at = 0
    for value, text in json_values(here):
        start = here.index(text, at)
        done += [here[at:start], written.get(canonical_text(value), text)]
        at = start + len(text)
    return "".join([*done, here[at:]])
