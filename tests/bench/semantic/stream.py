"""A stream of texts in the order of their arrival, and what each way of deciding makes of it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from semantic_layer.calibration.binomial import upper_bound
from semantic_layer.models.bert_encoder import BertEncoder
from tests.bench.fit_scorer import embed
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.curves import interval

MOST_CANDIDATES = 3
_KEPT_NEAR = 48  # nearest texts found once for all; of those not enough may be stored
_EMBEDDED = 512  # texts between two savings

Array = npt.NDArray[np.float32]
Near = Sequence[tuple[int, float]]  # (stored text, cosine), nearest first
Verdict = Callable[[int], bool | None]


@dataclass(frozen=True, slots=True)
class Stream:
    """Texts in order; those with the same group number have the same right answer.

    ``apart`` holds the pairs of groups that were labelled as different. Of other pairs of groups
    nothing is known.
    """

    texts: tuple[str, ...]
    group: tuple[int, ...]
    apart: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, pairs: Sequence[LabelledPair]) -> "Stream":
        """Return the stream in which each pair's first text comes before its second."""
        groups = _Groups()
        for pair in pairs:
            if pair.same:
                groups.join(pair.one, pair.other)
        texts = tuple(dict.fromkeys(text for pair in pairs for text in (pair.one, pair.other)))
        apart = {(groups.of(pair.one), groups.of(pair.other)) for pair in pairs if not pair.same}
        return cls(
            texts,
            tuple(groups.of(text) for text in texts),
            frozenset(apart | {(b, a) for a, b in apart}),
        )

    def verdict(self, asked: int, stored: int) -> bool | None:
        """Say whether one answer is right for both; None when no label tells."""
        one, other = self.group[asked], self.group[stored]
        if one == other:
            return True
        return False if (one, other) in self.apart else None


class Decider(Protocol):
    """A way to decide; ``near`` holds (stored text, cosine), nearest first."""

    name: str

    async def decide(self, asked: int, near: Near) -> int | None:
        """Return the stored text whose answer is served, None to generate."""
        ...

    async def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        """Learn from what became of the text; ``verdict`` tells of a stored one."""
        ...


@dataclass(slots=True)
class Tally:
    """What a stream came to. ``unlabelled`` hits are neither right nor wrong by the labels.

    ``seconds`` is what the look-ups took, None where that was not measured. ``falls`` holds, by
    intent, the text at which its threshold was first raised by labels of served ones.
    """

    name: str
    num_texts: int = 0
    right: int = 0
    wrong: int = 0
    unlabelled: int = 0
    first_hit: int | None = None
    seconds: float | None = 0.0
    wrong_pairs: list[tuple[int, int]] = field(default_factory=list)
    judged: list[tuple[int, bool]] = field(default_factory=list)
    falls: dict[str, int] = field(default_factory=dict)

    def count(self, asked: int, served: int, verdict: bool | None) -> None:
        """Count a hit, by what labels say of it."""
        self.right += verdict is True
        self.wrong += verdict is False
        self.unlabelled += verdict is None
        if verdict is not None:
            self.judged.append((asked, not verdict))
        if verdict is False:
            self.wrong_pairs.append((served, asked))
        if self.first_hit is None:
            self.first_hit = asked

    def until(self, asked: int) -> str:
        """Return how much of what was served up to a text was wrong, and of what came after."""
        first = [bad for at, bad in self.judged if at <= asked]
        later = [bad for at, bad in self.judged if at > asked]
        return f"{sum(first)}/{len(first)} wrong by then, {sum(later)}/{len(later)} after"

    def __str__(self) -> str:
        labelled = self.right + self.wrong
        low, high = interval(self.wrong, labelled)
        share = self.wrong / labelled if labelled else 0.0
        _, of_all = interval(self.wrong, self.num_texts)
        bound = upper_bound(self.wrong, labelled) if labelled else 1.0
        first = "never" if self.first_hit is None else str(self.first_hit)
        took = "-" if self.seconds is None else f"{1e3 * self.seconds / self.num_texts:.2f} ms"
        return (
            f"{self.name:40} hits {labelled + self.unlabelled:5}  wrong/served {self.wrong:3}/"
            f"{labelled:<5} {share:6.2%} [{low:.2%}, {high:.2%}] < {bound:.2%}  "
            f"unlabelled {self.unlabelled:4}  "
            f"wrong/all {self.wrong / self.num_texts:.2%} [<{of_all:.2%}]  "
            f"first hit {first:>5}  {took}"
        )


async def play(
    stream: Stream, nearest: "Nearest", decider: Decider, *, keep_all_misses: bool = True
) -> Tally:
    """Ask each text in turn; what is not served is generated, compared and stored.

    Without ``keep_all_misses`` a generated answer is stored only when the nearest stored one was
    wrong for it.
    """
    tally, seconds = Tally(decider.name, len(stream.texts)), 0.0
    is_stored = np.zeros(len(stream.texts), dtype=np.bool_)
    for asked in range(len(stream.texts)):
        near = nearest.of(asked, is_stored)
        began = time.perf_counter()
        served = await decider.decide(asked, near)
        seconds += time.perf_counter() - began
        await decider.learn(asked, near, served, partial(stream.verdict, asked))
        if served is not None:
            tally.count(asked, served, stream.verdict(asked, served))
            continue
        right = bool(near) and stream.verdict(asked, near[0][0]) is True
        if keep_all_misses or not right:
            is_stored[asked] = True
    tally.seconds = seconds
    return tally


class Nearest:
    """The nearest earlier texts of each text; most are found once for all deciders."""

    def __init__(self, vectors: Array) -> None:
        self._vectors = vectors
        self._kept: list[Near] = []
        for start in range(0, len(vectors), _EMBEDDED):
            rows = vectors[start : start + _EMBEDDED] @ vectors[: start + _EMBEDDED].T
            self._kept += [_top(row[: start + i], _KEPT_NEAR) for i, row in enumerate(rows)]

    def before(self, asked: int) -> Near:
        """Return the nearest of all texts that came before, whatever was stored of them."""
        return self._kept[asked][:MOST_CANDIDATES]

    def of(self, asked: int, is_stored: npt.NDArray[np.bool_]) -> Near:
        """Return the nearest of the stored ones."""
        kept = self._kept[asked]
        near = [one for one in kept if is_stored[one[0]]][:MOST_CANDIDATES]
        if len(near) == MOST_CANDIDATES or len(kept) < _KEPT_NEAR:
            return near
        cosines = self._vectors[:asked] @ self._vectors[asked]
        return _top(np.where(is_stored[:asked], cosines, -np.inf), MOST_CANDIDATES, least=-2.0)


def _top(cosines: Array, num: int, least: float = -np.inf) -> Near:
    is_more = len(cosines) > num
    chosen = np.argpartition(-cosines, num)[:num] if is_more else np.arange(len(cosines))
    ordered = chosen[np.argsort(-cosines[chosen], kind="stable")]
    return [(int(i), float(cosines[i])) for i in ordered if cosines[i] > least]


@dataclass(slots=True)
class Static:
    """A cosine threshold, as most caches have."""

    threshold: float
    name: str

    async def decide(self, asked: int, near: Near) -> int | None:
        return near[0][0] if near and near[0][1] >= self.threshold else None

    async def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        pass


def vectors_of(stream: Stream, encoder: BertEncoder, path: Path) -> Array:
    """Return the texts' vectors; a file keeps those of the longest stream of its name.

    A shorter stream of the same set is the beginning of a longer one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = np.load(path) if path.exists() else np.zeros((0, encoder.dim), np.float32)
    for start in range(len(kept), len(stream.texts), _EMBEDDED):
        texts = list(stream.texts[start : start + _EMBEDDED])
        found = embed(texts, encoder)
        kept = np.vstack([kept, *(found[text][None] for text in texts)]).astype(np.float32)
        np.save(path, kept)
    return np.asarray(kept[: len(stream.texts)])


class _Groups:
    """Texts joined by labels."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def join(self, one: str, other: str) -> None:
        self._parent[self._root(one)] = self._root(other)

    def of(self, text: str) -> int:
        return self._numbers.setdefault(self._root(text), len(self._numbers))

    def _root(self, text: str) -> str:
        self._parent.setdefault(text, text)
        while self._parent[text] != text:
            self._parent[text] = self._parent[self._parent[text]]
            text = self._parent[text]
        return text
