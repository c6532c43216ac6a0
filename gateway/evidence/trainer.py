"""Learns thresholds from labels as they come, beside the event loop."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from gateway.evidence.tuner import Tuner
from semantic_layer import (
    UNPROVEN,
    Calibration,
    CurvePoint,
    Label,
    LabelBook,
    calibrate,
    threshold_curve,
    trap_odds,
)

_log = structlog.get_logger(__name__)

EVERY_S = 0.5
ALL = "all"
_REFUTED = "stricter thresholds hold until labels prove others"
_REST = 10  # of ten parts of time one is spent on learning at most

Estimates = Mapping[str, CurvePoint]


class Trainer:
    """Keeps the tuner's calibration, and the estimate of wrong hits, up to date with the labels.

    ``scorer`` tells the fingerprint of what gives scores now: other labels don't count.
    """

    def __init__(self, book: LabelBook, tuner: Tuner, scorer: Callable[[], str]) -> None:
        self._book = book
        self._tuner = tuner
        self._scorer = scorer
        self._learnt_from: tuple[int, int, str] | None = None
        self.estimates: Estimates = {}

    async def run(self) -> None:
        """Learn for ever."""
        while True:
            started = time.monotonic()
            await self.learn()
            await asyncio.sleep(max(EVERY_S, _REST * (time.monotonic() - started)))

    async def learn(self) -> None:
        """Learn from all labels, if anything is new."""
        known = (self._book.num_changes, self._tuner.num_changes, self._scorer())
        if known == self._learnt_from:
            return
        labels, scorer = self._book.labels(), known[2]
        odds, calibration, estimates = await asyncio.to_thread(_learnt, labels, scorer, self._tuner)
        self._learnt_from, self.estimates = known, estimates
        if odds > 1 and self._tuner.trap_odds == 1:
            _log.warning("near_misses_refute_prior", trap_odds=round(odds, 1), detail=_REFUTED)
        self._tuner.use_calibration(calibration, odds)


def _odds(labels: Sequence[Label], scorer: str, tuner: Tuner) -> float:
    expected = None if tuner.pooled is None else tuner.pooled.expected
    if expected is None:
        return 1.0
    mine = [label for label in labels if label.scorer == scorer]
    return trap_odds(mine, expected, below=UNPROVEN)


def _learnt(
    labels: Sequence[Label], scorer: str, tuner: Tuner
) -> tuple[float, Calibration, Estimates]:
    odds = _odds(labels, scorer, tuner)
    base = tuner.base(odds)
    calibration = calibrate(labels, scorer=scorer, budgets=tuner.budgets, base=base)
    served = [label for label in labels if label.served and label.scorer == scorer]
    intents = dict.fromkeys(label.intent for label in served)
    groups = {i: [label for label in served if label.intent == i] for i in intents}
    if served:
        groups[ALL] = served
    return (
        odds,
        calibration,
        {
            name: threshold_curve(group, scorer=scorer, thresholds=[0.0])[0]
            for name, group in groups.items()
        },
    )
