"""The judge with a verifier: who is asked, in which order, and what happens when it fails."""

import asyncio
import random
from collections.abc import Iterator

import pytest

from semantic_layer.breaker import Breaker
from semantic_layer.chats.histories import Fit
from semantic_layer.chats.remains import Doubt
from semantic_layer.decision import Decision, Judge
from semantic_layer.entry import Entry
from semantic_layer.guarded import GuardedVerifier
from semantic_layer.models.scorer import BUNDLED, Scorer
from semantic_layer.outcome import Hit, Miss, Reason
from semantic_layer.policy import CachePolicy
from semantic_layer.resources import load_json
from semantic_layer.weighing import Found
from tests.fakes.house import House
from tests.fakes.verifier import FakeVerifier
from tests.semantic_layer.entries import entry_of

ASKED = "How do I apply for a refund?"
FAR = "What must I do to get my money back?"
NEAR = "Which way is there to ask for my money?"
SCORER = Scorer.of(load_json(BUNDLED))


def entry(text: str) -> Entry:
    return entry_of(text, text)


async def decide(verifier: FakeVerifier, *texts: str, threshold: float = 0.9) -> Decision:
    found = [Found(0.95 - i / 1000, entry(text)) for i, text in enumerate(texts)]
    return await Judge(SCORER, verifier=verifier).decide(ASKED, threshold, found)


async def test_rewording_is_served_when_the_verifier_is_sure() -> None:
    """The verifier's probability alone decides what rules leave open."""
    decision = await decide(FakeVerifier({FAR: 0.97}), FAR)
    assert decision.entry is not None
    assert decision.judgement.score == 0.97
    assert [r.check for r in decision.judgement.reasons] == ["guards", "verify", "threshold"]


async def test_rewording_is_refused_when_the_verifier_doubts() -> None:
    """A score under the threshold is a miss that names both."""
    decision = await decide(FakeVerifier({FAR: 0.6}), FAR)
    assert decision.entry is None
    assert decision.judgement.reasons[-1].detail == "0.6000 / 0.9000"


@pytest.mark.parametrize("stored", [ASKED, "how do i apply for a refund", "Hi, " + ASKED])
async def test_verifier_is_not_asked_when_texts_say_the_same(stored: str) -> None:
    """Equal texts and near-repeats cost no model call."""
    verifier = FakeVerifier()
    decision = await decide(verifier, stored, FAR)
    assert decision.entry is not None
    assert verifier.asked == []


@pytest.mark.parametrize(("below", "is_served"), [(0.0, True), (0.0015, True), (0.003, False)])
async def test_rules_serve_a_slip_when_its_cosine_is_rounded_down(
    below: float, is_served: bool
) -> None:
    """Machines round cosines otherwise; what rules call the same must not turn on that."""
    slip = Found(SCORER.least_nearest - below, entry("When was Shakespeare born?"))
    judge = Judge(SCORER, lambda word: word != "shakespear", FakeVerifier())
    decision = await judge.decide("When was Shakespear born?", 0.9, [slip])
    assert (decision.entry is not None) == is_served


async def test_verifier_is_not_asked_when_a_guard_vetoes() -> None:
    """What a guard has refused cannot be talked back in."""
    verifier = FakeVerifier({"How do I apply for a refund of 50 dollars?": 1.0})
    decision = await decide(verifier, "How do I apply for a refund of 50 dollars?")
    assert decision.entry is None
    assert verifier.asked == []


async def test_others_are_not_asked_of_when_the_nearest_may_be_served() -> None:
    """The nearest is asked of alone, and its answer is enough when it is a yes."""
    verifier = FakeVerifier({FAR: 0.97, NEAR: 0.99})
    decision = await decide(verifier, FAR, NEAR)
    assert decision.entry is not None
    assert decision.entry.text == FAR
    assert verifier.asked == [[FAR]]
    other = decision.judgement.candidates[1]
    assert other.reasons[-1].verdict == "skip"


async def test_surest_is_served_when_the_nearest_is_refused() -> None:
    """A near text that has another answer never hides one further off that has the same."""
    verifier = FakeVerifier({FAR: 0.2, NEAR: 0.95})
    decision = await decide(verifier, FAR, NEAR)
    assert decision.entry is not None
    assert decision.entry.text == NEAR
    assert verifier.asked == [[FAR], [NEAR]]


async def test_at_most_five_are_asked_of_when_all_are_refused() -> None:
    """A miss costs a bounded number of scores, the nearest ones."""
    verifier = FakeVerifier()
    texts = [
        f"{FAR} {word}"
        for word in ["alpha", "bravo", "carrot", "delta", "echo", "fox", "golf", "hotel"]
    ]
    decision = await decide(verifier, *texts)
    assert decision.entry is None
    assert sum(map(len, verifier.asked)) <= 5


async def test_decision_is_a_miss_that_says_why_when_the_verifier_fails() -> None:
    """A broken verifier never serves and never raises; near-repeats still hit."""
    house = House(verifier=FakeVerifier({FAR: 1.0}))
    assert isinstance(house.verifier, FakeVerifier)
    await house.seed(FAR)
    house.verifier.down = True
    outcome = await house.ask(ASKED)
    assert isinstance(outcome, Miss)
    reasons = outcome.judgement.candidates[0].reasons
    assert ("verify", "skip") in [(r.check, r.verdict) for r in reasons]
    house.verifier.down = False
    assert isinstance(await house.ask(ASKED), Hit)


async def test_decision_is_a_miss_when_the_verifier_is_slow() -> None:
    """A verifier past its deadline is a miss; its breaker opens like any part's."""
    verifier = FakeVerifier({FAR: 1.0})
    verifier.hold = asyncio.Event()
    house = House(verifier=verifier, policy=CachePolicy(verify_deadline_s=0.01, failures=1))
    await house.seed(FAR)
    assert isinstance(await house.ask(ASKED), Miss)
    assert house.cache.open_breakers["verifier"]
    verifier.hold.set()


async def test_long_text_is_refused_when_it_does_not_fit_the_verifier() -> None:
    """A text the model would have to cut is never judged by a part of it."""
    verifier = FakeVerifier({FAR: 1.0}, most_words=5)
    decision = await decide(verifier, FAR)
    assert decision.entry is None
    assert verifier.asked == []
    assert decision.judgement.reasons[-1].verdict == "skip"


async def test_others_are_weighed_while_the_verifier_reads_the_nearest() -> None:
    """The verifier has been asked before rules look at the second candidate."""
    verifier = FakeVerifier({FAR: 0.97})
    asked: list[int] = []

    def found() -> Iterator[Found]:
        for i, text in enumerate((FAR, NEAR)):
            asked.append(len(verifier.asked))
            yield Found(0.95 - i / 1000, entry(text))

    decision = await Judge(SCORER, verifier=verifier).decide(ASKED, 0.9, found())
    assert asked == [0, 1]
    assert decision.entry is not None
    assert verifier.asked == [[FAR]]


async def test_verifier_is_not_asked_ahead_when_it_costs_a_model_call() -> None:
    """A served model is asked only where rules serve nothing."""
    verifier = FakeVerifier({FAR: 0.97})
    verifier.asks_model = True
    decision = await decide(verifier, FAR, ASKED)
    assert decision.entry is not None
    assert decision.entry.text == ASKED
    assert verifier.asked == []


@pytest.mark.parametrize("down", [False, True])
async def test_decision_is_the_same_when_the_verifier_is_asked_ahead(*, down: bool) -> None:
    """Entry, scores and reasons of 500 look-ups are those of asking after all were weighed."""
    stored = [FAR, NEAR, ASKED, f"{ASKED} Now", "How do I apply for a refund of 50 dollars?"]
    stored += [f"{FAR} {word}" for word in ("alpha", "bravo", "carrot", "delta", "echo", "fox")]
    rng = random.Random(7)
    for _ in range(500):
        texts = rng.sample(stored, rng.randint(1, 8))
        table = {text: rng.choice([0.2, 0.85, 0.97]) for text in texts}
        decisions = []
        for asks_model in (False, True):
            verifier = FakeVerifier(table)
            verifier.asks_model = asks_model
            guarded = GuardedVerifier(verifier, Breaker("verifier"))
            verifier.down = down
            judge = Judge(SCORER, verifier=guarded)
            found = [Found(0.95 - i / 1000, entry(text)) for i, text in enumerate(texts)]
            decisions.append((await judge.decide(ASKED, 0.9, found)).judgement)
        assert decisions[0] == decisions[1]


def in_other_words(*, refers: bool = True) -> Fit:
    """Make the fit of two histories that say one thing in other words."""
    doubt = Doubt("user", "I ordered a kettle", "I bought a kettle", False, "ordered / bought")
    return Fit(1.0, Reason("history", "pass"), (ASKED, ASKED), (), (doubt,), refers)


@pytest.mark.parametrize(("score", "served"), [(0.97, True), (0.6, False)])
async def test_history_in_other_words_is_for_the_verifier_when_the_messages_are_equal(
    score: float, *, served: bool
) -> None:
    """Equal last messages are not enough: the least score of what came before counts."""
    verifier = FakeVerifier({"I bought a kettle": score})
    found = [Found(0.95, entry(ASKED), fit=in_other_words())]
    decision = await Judge(SCORER, verifier=verifier).decide(ASKED, 0.9, found)
    assert (decision.entry is not None) == served
    assert verifier.asked == [["I bought a kettle"]]


async def test_history_in_other_words_is_a_miss_when_there_is_no_verifier() -> None:
    """Rules alone never call two wordings of a history the same."""
    found = [Found(0.95, entry(ASKED), fit=in_other_words())]
    decision = await Judge(SCORER).decide(ASKED, 0.9, found)
    assert decision.entry is None
    assert "no verifier" in decision.judgement.reasons[-1].detail


async def test_open_finding_costs_score_when_the_verifier_is_asked() -> None:
    """Where little else agrees a verifier may overrule a guard, if it is surer than else."""
    asked = "how can i pay 4 my ticket on the train when the machine is broken"
    stored = "Is there a way of buying tickets on board if the machine has failed?"
    for said, is_served in ((0.93, False), (0.98, True)):
        judge = Judge(SCORER, verifier=FakeVerifier({stored: said}))
        decision = await judge.decide(asked, 0.9, [Found(0.95, entry(stored))])
        assert (decision.entry is not None) is is_served
        assert any(r.check == "numbers" and r.verdict == "pass" for r in decision.judgement.reasons)


async def test_open_finding_is_a_veto_when_there_is_no_verifier() -> None:
    """Nothing else can tell whether it means anything."""
    asked = "how can i pay 4 my ticket on the train when the machine is broken"
    stored = "Is there a way of buying tickets on board if the machine has failed?"
    decision = await Judge(SCORER).decide(asked, 0.1, [Found(0.99, entry(stored))])
    assert decision.entry is None
    assert decision.judgement.reasons[-1].check == "numbers"
