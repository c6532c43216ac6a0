"""Thresholds out of labels: each intent's own, else what all intents prove, else its prior. Pure.

A threshold is the lowest score at which the upper 95% bound of the wrong share among served hits
stays within the intent's budget (`walk`). The bound holds at every time one looks (`betting`), so
labels may be read as they come. Labels are taken to be sampled by their weights. Feedback, which
nobody samples, tells of wrong answers at least as often as of right ones: it counts where a low
wrong share is to be proven; a high one it proves only held against all that was served (`drift`,
`complaints`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from semantic_layer.calibration import betting
from semantic_layer.calibration.complaints import too_many
from semantic_layer.calibration.drift import Alarm, alarms
from semantic_layer.calibration.entry_thresholds import entry_thresholds, expected_within
from semantic_layer.calibration.labels import (
    Label,
    by_intent,
    of_scorer,
    reported,
    sampled,
    settled,
)
from semantic_layer.calibration.sample import Sample
from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.walk import Proves, lowest_within, proves_always

ALPHA = 0.05
ThresholdSource = Literal["manual", "own", "pooled", "tightened", "doubted", "prior"]
LEAST_AGAINST = 8  # labels that tighten a threshold without an alarm: no single verdict does
_MOST_OF_ANOTHER = 200.0  # labels that another intent's count as, however many there are


@dataclass(frozen=True, slots=True)
class Budgets:
    """The wrong share among served hits (0..1) to stay within, by intent."""

    default: float = 0.01
    own: Mapping[str, float] = field(default_factory=dict)

    def of(self, intent: str) -> float:
        """Return an intent's budget."""
        return self.own.get(intent, self.default)


@dataclass(frozen=True, slots=True)
class IntentCalibration:
    """An intent's threshold, where it is from, and what its labels say of serving at it.

    ``num_labels`` and ``wrong`` count the labels of pairs that it would serve. ``point`` is their
    weighted wrong share, ``lower`` and ``upper`` are its bounds, each with 95% confidence. Only an
    ``own`` threshold is proven to keep the budget. One that labels prove to break it is
    ``tightened``, to the lowest at which they no longer let one expect so. ``drifted`` says that
    the intent was sent back from its own.
    """

    intent: str
    threshold: float
    source: ThresholdSource
    budget: float
    num_labels: int = 0
    wrong: int = 0
    lower: float = 0.0
    point: float | None = None
    upper: float = 1.0
    drifted: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """What labels come to: by intent, and the thresholds of entries with a history."""

    intents: Mapping[str, IntentCalibration]
    entries: Mapping[str, float] = field(default_factory=dict)

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds that labels had a say in."""
        return {
            intent: one.threshold
            for intent, one in self.intents.items()
            if one.source not in {"manual", "prior"}
        }


@dataclass(frozen=True, slots=True)
class _Evidence:
    """An intent's labels, oldest first, and the alarms that they raised."""

    labels: Sequence[Label]
    raised: Sequence[Alarm]

    @property
    def fresh(self) -> list[Label]:
        """Labels since the last alarm: nothing older proves anything."""
        return [n for n in self.labels if not self.raised or n.at > self.raised[-1].at]

    @property
    def current(self) -> list[Label]:
        """Labels since things went wrong, those that raised the alarm included."""
        return [n for n in self.labels if not self.raised or n.at >= self.raised[0].since]

    @property
    def told(self) -> list[Label]:
        """What people said of hits while they raised an alarm."""
        spans = [(alarm.since, alarm.at) for alarm in self.raised if alarm.by_people]
        return [n for n in reported(self.labels) if any(a <= n.at <= b for a, b in spans)]

    @property
    def alpha(self) -> float:
        """What chance of error is left: half of it is spent by each start."""
        return ALPHA / 2.0 ** len(self.raised)


def calibrate(
    labels: Sequence[Label],
    *,
    scorer: str,
    budgets: Budgets,
    base: Thresholds,
    proves: Proves = proves_always,
) -> Calibration:
    """Return what the labels of one scorer (its fingerprint) come to.

    Thresholds set by hand and priors are those of ``base``.
    """
    groups = by_intent(settled(of_scorer(labels, scorer)))
    names = list(dict.fromkeys((*base.priors, *groups)))
    evidence = {
        name: _Evidence(groups.get(name, []), alarms(groups.get(name, []), budgets.of(name)))
        for name in names
    }
    intents = {}
    for name in names:
        threshold, source = _threshold(name, evidence, budgets.of(name), base, proves)
        intents[name] = _reported(name, threshold, source, evidence[name], budgets.of(name))
    entries: dict[str, float] = {}
    for name in names:
        if name not in base.manual:
            entries |= entry_thresholds(
                evidence[name].labels, intents[name].threshold, budgets.of(name), proves
            )
    return Calibration(intents, entries)


def _threshold(
    intent: str,
    evidence: Mapping[str, _Evidence],
    budget: float,
    base: Thresholds,
    proves: Proves,
) -> tuple[float, ThresholdSource]:
    if intent in base.manual:
        return base.manual[intent], "manual"
    own, prior = evidence[intent], base.prior(intent)
    found = lowest_within(Sample.of(own.fresh), budget, alpha=own.alpha, proves=proves)
    if found is not None:
        return found, "own"
    source: ThresholdSource = "prior"
    threshold = prior
    if not own.raised:
        pooled = _pooled(intent, evidence, base)
        found = lowest_within(pooled, budget, alpha=ALPHA, proves=proves_always)
        if found is not None:
            threshold, source = found, "pooled"
    if own.told:
        threshold = expected_within(Sample.of(own.told), threshold, budget)
        source = "tightened"
    least = 1 if own.raised else LEAST_AGAINST
    told = reported(own.current)
    if too_many(told, threshold, budget, least=least, alpha=ALPHA):
        threshold = expected_within(Sample.of(told), threshold, budget)
        source = "tightened"
    current = Sample.of(sampled(own.current))
    if not _contradicted(current.served_at(threshold), budget, least):
        return threshold, source
    return expected_within(current, threshold, budget), "tightened"


def _pooled(intent: str, evidence: Mapping[str, _Evidence], base: Thresholds) -> Sample:
    """Return the labels of all intents, as if they were this one's.

    Scores of another intent are moved by what lies between the two priors, in log odds, so priors
    keep their order. The more labels another intent has, the less each of them counts, so an intent
    leans on others until it has labels of its own (partial pooling).
    """
    here = _log_odds(base.prior(intent))
    shifts = {name: here - _log_odds(base.prior(name)) for name in evidence}
    shares = {
        name: 1.0 if name == intent else 1.0 / (1.0 + len(one.fresh) / _MOST_OF_ANOTHER)
        for name, one in evidence.items()
    }
    return Sample.of(
        [label for one in evidence.values() for label in one.fresh],
        score=lambda label: _moved(label.score, shifts[label.intent]),
        worth=lambda label: shares[label.intent],
    )


def _contradicted(served: Sample, budget: float, least: int) -> bool:
    """Say whether so many labels of what is served prove that too much of it is wrong."""
    if len(served) < least:
        return False
    return betting.log_wealth_above(served.draws(), budget) >= -math.log(ALPHA)


def _reported(
    intent: str, threshold: float, source: ThresholdSource, own: _Evidence, budget: float
) -> IntentCalibration:
    served = Sample.of(own.fresh).served_at(threshold)
    if not len(served):
        return IntentCalibration(intent, threshold, source, budget, drifted=bool(own.raised))
    draws = served.draws()
    return IntentCalibration(
        intent=intent,
        threshold=threshold,
        source=source,
        budget=budget,
        num_labels=len(served),
        wrong=int(served.wrong.sum()),
        lower=betting.lower_bound(draws),
        point=draws.share,
        upper=betting.upper_bound(draws),
        drifted=bool(own.raised) and source != "own",
    )


def _log_odds(share: float) -> float:
    share = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(share / (1 - share))


def _moved(score: float, shift: float) -> float:
    return 1.0 / (1.0 + math.exp(-(_log_odds(score) + shift)))
