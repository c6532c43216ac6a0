"""Our cache in a stream: thresholds learnt from labels as they come, as a running gateway does.

Every miss's best candidate that only its score held back is compared with the answer generated
anyway (``gray_share``); a share of served ones is answered afresh (``shadow_share``) and compared.
What no label of the set tells makes no label of ours.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from semantic_layer.calibration.calibration import Budgets, calibrate
from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.pooled import PooledThresholds
from semantic_layer.calibration.settled import UNPROVEN
from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.trap_odds import trap_odds
from tests.bench.semantic.pair_scores import PairScores
from tests.bench.semantic.stream import Near, Stream, Verdict

SCORER = "bench"
_EVERY = 4  # labels between two calibrations, or one in thirty: a gateway learns twice a second


@dataclass(slots=True)
class Learning:
    """The nearest text whose score reaches the threshold in force.

    ``budget`` is the wrong share among served ones to stay within, ``intents`` are those of the
    stream's texts. Without ``pooled`` only what is proven is served.
    """

    name: str
    stream: Stream
    intents: Sequence[str]
    scores: PairScores
    pooled: PooledThresholds | None
    budget: float = 0.01
    shadow_share: float = 0.1
    gray_share: float = 1.0
    labels: list[Label] = field(default_factory=list)
    thresholds: Thresholds = field(init=False)
    trap_odds: float = 1.0
    _next: int = _EVERY
    _last: dict[int, float] = field(default_factory=dict)
    _rng: random.Random = field(default_factory=lambda: random.Random(11))

    def __post_init__(self) -> None:
        self.thresholds = self._base()

    def _base(self) -> Thresholds:
        if self.pooled is None:
            return Thresholds.unproven(self.budget)
        return Thresholds.within(self.budget, pooled=self.pooled, trap_odds=self.trap_odds)

    async def decide(self, asked: int, near: Near) -> int | None:
        self._last, texts = {}, self.stream.texts
        for stored, similarity in near:
            limit = self.thresholds.of(self.intents[asked], entry_id=str(stored))
            score = (await self.scores.of(texts[asked], texts[stored], similarity)).at(limit)
            self._last[stored] = score
            if score >= limit:
                return stored
        return None

    def learn(self, asked: int, near: Near, served: int | None, verdict: Verdict) -> None:
        judged = served
        if served is None and self._last:
            judged = max(self._last, key=lambda stored: self._last[stored])
        share = self.gray_share if served is None else self.shadow_share
        if judged is None or not self._last[judged] or self._rng.random() >= share:
            return
        right = verdict(judged)
        if right is not None:
            self.labels.append(self._label(asked, judged, right=right, served=served is not None))
            if len(self.labels) >= self._next:
                self._calibrate()
                self._next = len(self.labels) + max(_EVERY, len(self.labels) // 30)

    def _label(self, asked: int, stored: int, *, right: bool, served: bool) -> Label:
        return Label(
            label_id=str(len(self.labels)),
            intent=self.intents[asked],
            score=min(1.0, self._last[stored]),
            right=right,
            source="shadow" if served else "gray",
            served=served,
            at=float(asked),
            weight=1 / (self.shadow_share if served else self.gray_share),
            entry_id=str(stored),
            text=str(asked),
            scorer=SCORER,
        )

    def _calibrate(self) -> None:
        if self.pooled is not None and self.pooled.expected is not None:
            self.trap_odds = trap_odds(self.labels, self.pooled.expected, below=UNPROVEN)
        base = self._base()
        found = calibrate(self.labels, scorer=SCORER, budgets=Budgets(self.budget), base=base)
        self.thresholds = replace(base, calibrated=found.thresholds, entries=found.entries)
