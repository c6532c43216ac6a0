"""Calibration: what labels make of thresholds, against a known truth."""

from typing import Any

import numpy as np
import pytest

from semantic_layer.calibration.binomial import lower_bound
from semantic_layer.calibration.calibration import Budgets, Calibration, calibrate
from semantic_layer.calibration.labels import Label
from semantic_layer.calibration.settled import SETTLED, settled_from
from semantic_layer.calibration.thresholds import PRIORS, Thresholds
from tests.semantic_layer.labelled_traffic import SCORER, Traffic

RUNS = 25
ALONE = Thresholds(priors={"general": 0.92})


def calibrated(labels: list[Label], budget: float = 0.01, **more: Any) -> Calibration:
    return calibrate(
        labels, scorer=SCORER, budgets=Budgets(budget), base=Thresholds.within(budget), **more
    )


def traffic(seed: int, **more: Any) -> Traffic:
    return Traffic(np.random.default_rng(seed), **more)


def ones(num: int, wrong: int = 0, **more: Any) -> list[Label]:
    fields: dict[str, Any] = {
        "intent": "general", "score": 0.97, "source": "shadow", "served": True, "scorer": SCORER,
    } | more  # fmt: skip
    at = fields.pop("at", 0.0)
    return [Label(label_id=f"{at}-{i}", right=i >= wrong, at=at + i, **fields) for i in range(num)]


@pytest.mark.parametrize(
    "kind",
    [
        {"num": 300},
        {"num": 3_000},
        {"num": 12_000, "shadow": 0.5, "gray": 0.1},
        {"num": 3_000, "entries": 900},
    ],
    ids=["few", "many", "sampled", "correlated"],
)
@pytest.mark.parametrize("budget", [0.02, 0.05])
def test_promised_bound_holds_when_the_truth_is_known(kind: dict[str, Any], budget: float) -> None:
    """In 95% of runs a threshold of its own keeps the budget, and the upper bound is above.

    As far as so few runs can tell; `tests/bench` has the many.
    """
    more = dict(kind)
    num, entries = more.pop("num"), more.pop("entries", None)
    broken = too_low = 0
    for seed in range(RUNS):
        source = traffic(seed, slope=8 * budget, entries=entries)
        labels = source.labels(num, **more)
        found = calibrate(labels, scorer=SCORER, budgets=Budgets(budget), base=ALONE)
        general = found.intents["general"]
        truth = source.wrong_share(general.threshold)
        broken += general.source == "own" and truth > budget
        too_low += truth > general.upper
    assert lower_bound(broken, RUNS) <= 0.05
    assert lower_bound(too_low, RUNS) <= 0.05


def test_threshold_is_its_own_when_labels_prove_it() -> None:
    """Much right traffic opens the intent far below its prior."""
    found = calibrated(traffic(1, slope=0.02).labels(3_000)).intents["general"]
    assert found.source == "own"
    assert found.threshold < PRIORS["general"] - 0.1
    assert found.upper <= 0.01


def test_prior_holds_when_there_are_no_labels() -> None:
    """Nothing known, nothing changed; other scorers' labels are nothing."""
    assert calibrated([]).thresholds == {}
    other = [
        Label(label_id=str(i), intent="code", score=0.9, right=True, source="gray", served=False,
              at=float(i), scorer="another")
        for i in range(1_000)
    ]  # fmt: skip
    found = calibrated(other).intents["code"]
    assert (found.source, found.threshold, found.num_labels) == ("prior", PRIORS["code"], 0)


def test_other_intents_vouch_when_an_intent_has_no_labels_of_its_own() -> None:
    """What several intents prove moves the rest from their priors, which keep their order."""
    labels = [
        label
        for seed, intent in enumerate(("general", "code", "summarization", "factual"))
        for label in traffic(seed, slope=0.001, intent=intent).labels(3_000)
    ]
    intents = calibrated(labels).intents
    poor = [intents["translation"], intents["creative"]]
    assert [one.source for one in poor] == ["pooled", "pooled"]
    assert poor[0].threshold < PRIORS["translation"]
    assert poor[0].threshold < poor[1].threshold


def test_one_intent_alone_never_vouches_for_another() -> None:
    """However many labels it has, they count as two hundred."""
    labels = traffic(1, slope=0.005).labels(5_000)
    assert calibrated(labels).intents["translation"].source == "prior"


def test_threshold_rises_when_labels_contradict_the_prior() -> None:
    """Wrong hits above the prior make it stricter long before anything is proven."""
    labels = ones(20, score=0.99, at=100) + ones(6, 6, score=0.94)
    found = calibrated(labels).intents["general"]
    assert found.source == "tightened"
    assert 0.94 < found.threshold <= 0.99


def test_intent_returns_to_its_prior_when_it_drifted() -> None:
    """What was proven before counts no more; new proof brings it back."""
    good = traffic(1, slope=0.02).labels(3_000)
    assert calibrated(good).intents["general"].source == "own"
    bad = ones(8, 8, score=0.85, at=1e6)
    drifted = calibrated(good + bad).intents["general"]
    assert drifted.drifted
    assert drifted.threshold >= PRIORS["general"]
    again = [*good, *bad, *ones(1_500, score=0.9, at=2e6, text="x", entry_id="")]
    assert calibrated(again).intents["general"].source in {"own", "prior"}


def test_manual_threshold_stays_when_labels_say_otherwise() -> None:
    """An operator's word is last; what labels say of it is still reported."""
    base = Thresholds(manual={"general": 0.6})
    labels = traffic(1, slope=0.5).labels(2_000)
    found = calibrate(labels, scorer=SCORER, budgets=Budgets(), base=base).intents["general"]
    assert (found.threshold, found.source) == (0.6, "manual")
    assert found.lower > 0.01


def test_entry_that_was_wrong_is_served_above_that_score_only() -> None:
    """Its intent stays where it is."""
    labels = ones(5, 1, score=0.96, entry_id="e")
    found = calibrated(labels)
    assert found.entries["e"] > 0.96
    assert found.intents["general"].threshold == PRIORS["general"]
    thresholds = Thresholds(entries=found.entries)
    assert thresholds.of("general", entry_id="e") > 0.96
    assert thresholds.of("general", entry_id="other") == PRIORS["general"]


def test_entry_gets_a_lower_threshold_when_its_own_labels_prove_it() -> None:
    """A much asked question, right in many wordings, opens by itself."""
    labels = [
        one
        for i, score in enumerate(np.linspace(0.7, 1, 600))
        for one in ones(1, score=float(score), entry_id="e", text=f"wording {i}", at=float(i))
    ]
    found = calibrated(labels)
    assert found.entries["e"] < 0.8
    assert found.intents["general"].source == "prior"


def test_labels_of_one_entry_count_once_for_its_intent() -> None:
    """A thousand wordings of one question say little about other questions."""
    labels = [
        one for i in range(1_000) for one in ones(1, entry_id="e", text=f"wording {i}", at=float(i))
    ]
    found = calibrated(labels).intents["general"]
    assert found.source == "prior"
    assert found.upper > 0.5


def test_budget_of_its_own_counts_when_an_intent_has_one() -> None:
    """The same labels prove five percent, not one."""
    labels = ones(120, entry_id="", text="")
    base = Thresholds()
    budgets = Budgets(0.01, {"general": 0.05})
    assert calibrate(labels, scorer=SCORER, budgets=budgets, base=base).thresholds
    assert not calibrate(labels, scorer=SCORER, budgets=Budgets(0.01), base=base).thresholds


def test_threshold_rises_over_all_that_was_wrong_when_the_prior_is_refuted() -> None:
    """Where every score is wrong as often, one step up would be wrong as often too."""
    labels = [one for i in range(10) for one in ones(5, 1, score=0.93 + 0.006 * i, at=100.0 * i)]
    found = calibrated(labels).intents["general"]
    assert found.source == "tightened"
    assert found.threshold > 0.93 + 0.006 * 9


def test_only_what_rules_call_the_same_is_served_until_labels_prove_more() -> None:
    """With nothing fitted to begin with, five hundred right near-misses open an intent."""
    base = Thresholds.unproven(0.01)
    some, many = (
        calibrate(
            ones(num, score=0.9, source="gray", served=False),
            scorer=SCORER, budgets=Budgets(0.01), base=base,
        ).intents["general"]
        for num in (100, 600)
    )  # fmt: skip
    assert (some.source, some.threshold) == ("prior", settled_from(0.01))
    assert (many.source, many.threshold) == ("own", 0.9)


def complaints(num: int, silent: int) -> list[Label]:
    """Return complaints of hits, each after so many that nobody spoke of."""
    return ones(num, num, score=0.95, source="feedback", silent=silent, at=100.0)


def test_intent_is_served_above_complaints_only_when_they_are_many_of_all_hits() -> None:
    """Six wrong in sixty break a budget of 1%; six in six thousand do not."""
    many, few = (
        calibrated(complaints(6, silent)).intents["general"] for silent in (9, 1_000)
    )  # fmt: skip
    assert (many.source, many.drifted) == ("tightened", True)
    assert many.threshold > 0.95
    assert (few.source, few.threshold) == ("prior", PRIORS["general"])


def test_nothing_but_equal_texts_is_served_when_the_surest_were_complained_of() -> None:
    """Where even the word of rules is wrong too often, no score is left to serve."""
    labels = ones(6, 6, score=max(SETTLED), source="feedback", silent=9)
    assert calibrated(labels).intents["general"].threshold > max(SETTLED)


def test_intent_comes_back_when_later_labels_prove_it() -> None:
    """Silence after the fall is no proof; near-misses that were right are."""
    fallen = complaints(6, 9)
    quiet = [*fallen, *ones(1, score=0.99, source="feedback", silent=5_000, at=200.0)]
    assert calibrated(quiet).intents["general"].source == "tightened"
    right = ones(900, score=0.93, source="gray", served=False, at=300.0)
    back = calibrated([*fallen, *right]).intents["general"]
    assert back.source == "own"
    assert back.threshold <= 0.93


def test_alarm_tightens_when_few_labels_raised_it() -> None:
    """Four wrong of the first four are enough where the surest of budgets is broken."""
    found = calibrated(ones(4, 4, score=0.95)).intents["general"]
    assert (found.source, found.drifted) == ("tightened", True)
