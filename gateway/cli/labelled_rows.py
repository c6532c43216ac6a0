"""Labelled pairs as JSON lines: what ``strata thresholds FILE`` reads."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gateway.cli.rows import BadRow, parse_lines

_VERDICTS = ("right", "same_answer")


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A verdict on two texts, or on a ``score`` that they were given elsewhere.

    ``stored`` is the text whose answer is kept, ``asked`` the one it would answer.
    """

    number: int
    right: bool
    stored: str = ""
    asked: str = ""
    score: float | None = None
    intent: str | None = None
    weight: float = 1.0


def read_labelled(lines: Iterable[bytes], name: str) -> Iterator[LabelledRow | BadRow]:
    """Read rows ``{"a", "b", "right" or "same_answer"}`` or ``{"score", "right"}``.

    Both may name an ``intent`` and a ``weight``. A bad row says which field and why.

    Raises:
        NoRow: no line is JSON.
    """
    for line in parse_lines(lines, name):
        if isinstance(line, BadRow):
            yield line
            continue
        try:
            yield _row(line.number, line.row)
        except ValueError as error:
            yield BadRow(line.number, str(error))


def _row(number: int, row: dict[str, Any]) -> LabelledRow:
    is_scored = "score" in row
    return LabelledRow(
        number=number,
        right=_verdict(row),
        stored="" if is_scored and "a" not in row else _text(row, "a"),
        asked="" if is_scored and "b" not in row else _text(row, "b"),
        score=_number(row, "score", 0.0, 1.0) if is_scored else None,
        intent=_text(row, "intent") if "intent" in row else None,
        weight=_number(row, "weight", 1.0, math.inf) if "weight" in row else 1.0,
    )


def _verdict(row: dict[str, Any]) -> bool:
    said = [row[name] for name in _VERDICTS if name in row]
    if not said:
        raise ValueError("right: is missing (or same_answer); true or false")
    if len({*map(repr, said)}) > 1 or not isinstance(said[0], bool):
        raise ValueError(f"right: must be true or false, not {said[-1]!r}")
    return said[0]


def _text(row: dict[str, Any], name: str) -> str:
    text = row.get(name)
    if not isinstance(text, str) or not text.strip():
        missing = "is missing" if name not in row else f"must be a text, not {text!r}"
        raise ValueError(f"{name}: {missing}")
    return text


def _number(row: dict[str, Any], name: str, low: float, high: float) -> float:
    number = row[name]
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if not is_number or not low <= number <= high or math.isinf(number):
        above = f"{low:g} or more" if math.isinf(high) else f"{low:g} to {high:g}"
        raise ValueError(f"{name}: must be a number of {above}, not {number!r}")
    return float(number)
