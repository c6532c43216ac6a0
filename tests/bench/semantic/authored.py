"""Question groups written for Strata: one question, its rewordings, and traps that look like it.

Apache-2.0. One JSON object a line: ``{"q", "same": [text], "traps": [{"kind", "text"}]}``.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from zlib import crc32

from tests.bench.pair_sets import LabelledPair

FOLDER = Path(__file__).parent / "authored"
_HELD_OUT_SHARE = 7  # one group in seven is never trained on


@dataclass(frozen=True, slots=True)
class Trap:
    """A text whose right answer differs, and the kind of the difference."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Group:
    """Texts with the same right answer (the question first) and their traps."""

    name: str
    same: tuple[str, ...]
    traps: tuple[Trap, ...]

    @property
    def is_held_out(self) -> bool:
        """Whether the group is for calibrating and measuring only."""
        return crc32(self.same[0].encode()) % _HELD_OUT_SHARE == 0

    @property
    def is_measured(self) -> bool:
        """Whether a held-out group is for measuring; the others calibrate."""
        return self.is_held_out and crc32(self.same[0].encode()) // _HELD_OUT_SHARE % 2 == 0

    def asked(self) -> Iterator[tuple[LabelledPair, str]]:
        """Yield the question with each of its rewordings and traps."""
        question, *others = self.same
        for text in others:
            yield LabelledPair(question, text, same=True), "same"
        for trap in self.traps:
            yield LabelledPair(question, trap.text, same=False), trap.kind

    def pairs(self) -> Iterator[tuple[LabelledPair, str]]:
        """Yield every usable pair with its kind; traps are not compared among themselves."""
        for one, other in combinations(self.same, 2):
            yield LabelledPair(one, other, same=True), "same"
        for text in self.same:
            for trap in self.traps:
                yield LabelledPair(text, trap.text, same=False), trap.kind


def read_groups(folder: Path = FOLDER) -> list[Group]:
    """Read all groups; a line that does not parse, or half a file, is left out."""
    groups = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            try:
                groups.append(_group(f"{path.stem}:{number}", json.loads(line)))
            except (ValueError, KeyError, TypeError):
                continue
    return groups


def _group(name: str, row: dict[str, object]) -> Group:
    same, traps = row["same"], row["traps"]
    assert isinstance(same, list), name
    assert isinstance(traps, list), name
    return Group(
        name,
        (str(row["q"]), *same),
        tuple(Trap(str(trap["kind"]), str(trap["text"])) for trap in traps),
    )
