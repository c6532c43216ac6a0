"""What a split must lose to be worth a word: about a block of a cache. Pure."""

import re

from gateway.lint.judge import Judged
from gateway.lint.recent import Split
from gateway.lint.turn import Turns

MIN_LOST_CHARS = 64  # of English; some 16 tokens
MIN_LOST_WIDE = 20  # of scripts whose characters are tokens
TURN_CHARS = 16  # that the markup about a turn is worth, in a template of some five tokens
VOLATILE = ("timestamp", "uuid", "identifier", "number")

_WIDE = re.compile(r"[\u0370-\u1fff\u2e80-\ud7ff\uf900-\uffef]")


def least_lost(turns: Turns) -> int:
    """Return the characters that are worth a word: fewer where each is a token."""
    is_wide = any(not turn.text.isascii() and _WIDE.search(turn.text) for turn in turns.turns)
    return MIN_LOST_WIDE if is_wide else MIN_LOST_CHARS


def may_cost(turns: Turns, split: Split) -> bool:
    """Say whether a split loses enough, the markup about turns and what changes counted."""
    return _with_markup(turns, split) >= least_lost(turns)


def costs(turns: Turns, split: Split, judged: Judged) -> bool:
    """Say whether a fault loses enough: of a short text only what heads it, or turns moved."""
    if split.num_lost >= least_lost(turns):
        return True
    is_fact = judged.cause in VOLATILE and turns.turns[judged.turn].role == "system"
    return (is_fact and split.num_common < MIN_LOST_CHARS) or judged.cause == "few_shot_order"


def _with_markup(turns: Turns, split: Split) -> int:
    """Count what is lost, and beside it the markup of the turns that stand in both behind.

    Of a prompt that parts in its first block, what stands before is lost too.
    """
    at, num_turns = 0, 0
    theirs = {turn.key for turn in split.nearest.turns.turns}
    for turn in turns.turns:
        is_first = at <= split.num_common < at + len(turn.text)
        at += len(turn.text)
        if at > split.num_common and (is_first or turn.key in theirs):
            num_turns += 1
    before = split.num_common + TURN_CHARS if split.num_common < MIN_LOST_CHARS else 0
    return before + split.num_lost + TURN_CHARS * num_turns
