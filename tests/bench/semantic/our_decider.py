"""Our cache in a stream: thresholds learnt from labels as they come, by a gateway's own trainer.

Every miss's best candidate that only its score held back is compared with the answer generated
anyway (``gray_share``); a share of served ones is answered afresh (``shadow_share``) and compared,
or people tell what they were served. What no label of the set tells makes no label of ours.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gateway.evidence.trainer import Trainer
from gateway.evidence.tuner import Tuner
from semantic_layer import Label, LabelBook, PooledThresholds, Row, Start, Thresholds, encode_label
from tests.bench.semantic.pair_scores import PairScores
from tests.bench.semantic.stream import Near, Stream, Verdict

SCORER = "bench"
_EVERY = 4  # labels between two calibrations, or one in thirty: a gateway learns twice a second
Told = Literal["nothing", "complaints", "all"]


@dataclass(slots=True)
class Learning:
    """The nearest text whose score reaches the threshold in force.

    ``budget`` is the wrong share among served ones to stay within, ``intents`` are those of the
    stream's texts. ``told`` is what people say of hits: nothing, the wrong ones, or all. ``falls``
    holds, by intent, the text at which its threshold was first raised by labels.
    """

    name: str
    stream: Stream
    intents: Sequence[str]
    scores: PairScores
    pooled: PooledThresholds | None
    start: Start = "fitted"
    budget: float = 0.01
    shadow_share: float = 0.1
    gray_share: float = 1.0
    told: Told = "nothing"
    thresholds: Thresholds = field(init=False)
    falls: dict[str, int] = field(default_factory=dict)
    _book: LabelBook = field(default_factory=lambda: LabelBook(clock=lambda: 0.0))
    _tuner: Tuner = field(init=False)
    _trainer: Trainer = field(init=False)
    _num: int = 0
    _next: int = _EVERY
    _silent: dict[str, int] = field(default_factory=dict)
    _last: dict[int, float] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=lambda: random.Random(11))

    def __post_init__(self) -> None:
        self._tuner = Tuner(self.budget, self._retune, pooled=self.pooled, start=self.start)
        self._trainer = Trainer(self._book, self._tuner, lambda: SCORER)
        self.thresholds = self._tuner.base()

    async def decide(self, asked: int, near: Near) -> int | None:
        self._last, texts = {}, self.stream.texts
        for stored, similarity in near:
            limit = self.thresholds.of(self.intents[asked], entry_id=str(stored))
            score = (await self.scores.of(texts[asked], texts[stored], similarity)).at(limit)
            self._last[stored] = score
            if score >= limit:
                return stored
        return None

    async def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        judged = served
        if served is None and self._last:
            judged = max(self._last, key=lambda stored: self._last[stored])
        if judged is None or not self._last[judged]:
            return
        right = verdict(judged)
        self._tell(asked, served, right=right)
        share = self.gray_share if served is None else self.shadow_share
        if self._rng.random() < share and right is not None:
            self._take(self._label(asked, judged, right=right, served=served is not None))
        if self._num >= self._next:
            await self._trainer.learn()
            self._note(asked)
            self._next = self._num + max(_EVERY, self._num // 30)

    def _tell(self, asked: int, served: int | None, *, right: bool | None) -> None:
        """Let people say what they were served; hits that they say nothing of are counted."""
        if served is None or self.told == "nothing":
            return
        intent = self.intents[asked]
        if right is None or (right and self.told == "complaints"):
            self._silent[intent] = self._silent.get(intent, 0) + 1
            return
        label = self._label(
            asked, served, right=right, served=True, silent=self._silent.pop(intent, 0)
        )
        self._take(label)

    def _take(self, label: Label) -> None:
        self._num += 1
        self._book.take([Row(label.label_id, self._num, encode_label(label))])

    def _label(
        self, asked: int, stored: int, *, right: bool, served: bool, silent: int | None = None
    ) -> Label:
        told = silent is not None
        weight = 1 / (self.shadow_share if served else self.gray_share) if not told else 1.0
        return Label(
            label_id=str(self._num),
            intent=self.intents[asked],
            score=min(1.0, self._last[stored]),
            right=right,
            source="feedback" if told else "shadow" if served else "gray",
            served=served,
            at=float(asked),
            weight=weight,
            silent=silent or 0,
            entry_id=str(stored),
            text=str(asked),
            scorer=SCORER,
        )

    def _note(self, asked: int) -> None:
        for intent, one in self._tuner.calibration.intents.items():
            if one.source == "tightened" or one.drifted:
                self.falls.setdefault(intent, asked)

    def _retune(self, thresholds: Thresholds, _: object) -> None:
        self.thresholds = thresholds
