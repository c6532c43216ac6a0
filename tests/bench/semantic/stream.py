"""A stream of texts in the order of their arrival, and what each way of deciding makes of it."""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from semantic_layer.bert_encoder import BertEncoder
from semantic_layer.decision import Found, Judge
from tests.bench.fit_scorer import embed
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.curves import entry_of, interval

MOST_CANDIDATES = 3
_KEEP_EVERY = 200  # scores

Array = npt.NDArray[np.float32]


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

    async def decide(self, asked: int, near: Sequence[tuple[int, float]]) -> int | None:
        """Return the stored text whose answer is served, None to generate."""
        ...

    def observe(self, stored: int, similarity: float, *, right: bool) -> None:
        """Learn what comparing a generated answer with the nearest stored one told."""
        ...


@dataclass(slots=True)
class Tally:
    """What a stream came to. ``unlabelled`` hits are neither right nor wrong by the labels."""

    name: str
    num_texts: int = 0
    right: int = 0
    wrong: int = 0
    unlabelled: int = 0
    first_hit: int | None = None
    seconds: float = 0.0
    wrong_pairs: list[tuple[int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        labelled = self.right + self.wrong
        low, high = interval(self.wrong, labelled)
        share = self.wrong / labelled if labelled else 0.0
        _, of_all = interval(self.wrong, self.num_texts)
        first = "never" if self.first_hit is None else str(self.first_hit)
        return (
            f"{self.name:34} hits {labelled + self.unlabelled:5}  wrong/served {self.wrong:3}/"
            f"{labelled:<5} {share:6.2%} [{low:.2%}, {high:.2%}]  unlabelled {self.unlabelled:4}  "
            f"wrong/all {self.wrong / self.num_texts:.2%} [<{of_all:.2%}]  first hit {first:>5}  "
            f"{1e3 * self.seconds / self.num_texts:.2f} ms"
        )


async def play(
    stream: Stream, vectors: Array, decider: Decider, *, keep_all_misses: bool = True
) -> Tally:
    """Ask each text in turn; what is not served is generated, compared and stored.

    Without ``keep_all_misses`` a generated answer is stored only when the nearest stored one was
    wrong for it.
    """
    tally = Tally(decider.name, len(stream.texts))
    stored: list[int] = []
    matrix = np.empty_like(vectors)
    for asked, vector in enumerate(vectors):
        near = _nearest(matrix[: len(stored)], stored, vector)
        began = time.perf_counter()
        served = await decider.decide(asked, near)
        tally.seconds += time.perf_counter() - began
        if served is not None:
            _count(tally, stream, asked, served)
            continue
        right = bool(near) and stream.verdict(asked, near[0][0]) is True
        if near:
            decider.observe(near[0][0], near[0][1], right=right)
        if keep_all_misses or not right:
            matrix[len(stored)] = vector
            stored.append(asked)
    return tally


def _count(tally: Tally, stream: Stream, asked: int, served: int) -> None:
    verdict = stream.verdict(asked, served)
    tally.right += verdict is True
    tally.wrong += verdict is False
    tally.unlabelled += verdict is None
    if verdict is False:
        tally.wrong_pairs.append((served, asked))
    if tally.first_hit is None:
        tally.first_hit = asked


def _nearest(matrix: Array, stored: Sequence[int], vector: Array) -> list[tuple[int, float]]:
    if not stored:
        return []
    cosines = matrix @ vector
    top = np.argsort(-cosines)[:MOST_CANDIDATES]
    return [(stored[i], float(cosines[i])) for i in top]


@dataclass(slots=True)
class Static:
    """A cosine threshold, as most caches have."""

    threshold: float
    name: str

    async def decide(self, asked: int, near: Sequence[tuple[int, float]]) -> int | None:
        return near[0][0] if near and near[0][1] >= self.threshold else None

    def observe(self, stored: int, similarity: float, *, right: bool) -> None:
        pass


Scores = Callable[[int, int, float], Awaitable[float]]


@dataclass(slots=True)
class Ours:
    """The best of the nearest when its score reaches the threshold of the asked text's intent."""

    name: str
    thresholds: Sequence[float]
    scores: Scores

    async def decide(self, asked: int, near: Sequence[tuple[int, float]]) -> int | None:
        limit = self.thresholds[asked]
        for stored, similarity in near:
            if await self.scores(asked, stored, similarity) >= limit:
                return stored
        return None

    def observe(self, stored: int, similarity: float, *, right: bool) -> None:
        pass


class KnownScores:
    """Scores of our judge, each found once and kept in a file of numbers between runs."""

    def __init__(self, stream: Stream, judge: Judge, path: Path) -> None:
        self._stream = stream
        self._judge = judge
        self._path = path
        self._known: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}

    async def of(self, asked: int, stored: int, similarity: float) -> float:
        """Return the score of one pair; 0 where it is vetoed."""
        texts = self._stream.texts
        said = f"{self._judge.fingerprint}\0{texts[asked]}\0{texts[stored]}"
        key = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
        if key not in self._known:
            found = [Found(similarity, entry_of(texts[stored]))]
            decision = await self._judge.decide(texts[asked], 1.01, found)
            self._known[key] = round(decision.judgement.score or 0.0, 5)
            if len(self._known) % _KEEP_EVERY == 0:
                self.keep()
        return self._known[key]

    def keep(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self._known))


def vectors_of(stream: Stream, encoder: BertEncoder, path: Path) -> Array:
    """Return the texts' vectors, kept in a file between runs."""
    if path.exists():
        kept = np.load(path)
        if len(kept) == len(stream.texts):
            return np.asarray(kept, dtype=np.float32)
    found = embed(list(stream.texts), encoder)
    vectors = np.vstack([found[text] for text in stream.texts]).astype(np.float32)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, vectors)
    return vectors


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
