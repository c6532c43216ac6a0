"""Where two texts differ, word by word; Chinese characters are words of their own. Pure."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_WORDS = 1200
_WORD = re.compile(r"[一-鿿぀-ヿ]|[^\W一-鿿぀-ヿ]+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words on end; ``differs`` says that the other text has not got them here."""

    text: str
    differs: bool


def differences(one: str, other: str) -> tuple[list[Piece], list[Piece]]:
    """Return both texts in pieces; long ones are compared as far as `MAX_WORDS`."""
    ours, theirs = _WORD.findall(one), _WORD.findall(other)
    if max(len(ours), len(theirs)) > MAX_WORDS:
        return [Piece(one, False)], [Piece(other, False)]
    folded = [word.casefold() for word in ours], [word.casefold() for word in theirs]
    matcher = difflib.SequenceMatcher(None, folded[0], folded[1], autojunk=False)
    left: list[Piece] = []
    right: list[Piece] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        _add(left, ours[i1:i2], differs=tag != "equal")
        _add(right, theirs[j1:j2], differs=tag != "equal")
    return left, right


def _add(pieces: list[Piece], words: Sequence[str], *, differs: bool) -> None:
    if words:
        pieces.append(Piece("".join(words), differs))
