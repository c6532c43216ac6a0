"""What is learnt of hits and near-misses, over a gateway in memory with a scripted model."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from semantic_layer import Label
from tests.gateway.learner import FEEDBACK, REWORDED, STORED, Learner, body, opened


@pytest.fixture
async def learner(request: pytest.FixtureRequest) -> AsyncIterator[Learner]:
    """A learner with the policy that the test's parameter names."""
    async with opened(**getattr(request, "param", {})) as learner:
        yield learner


policy = pytest.mark.parametrize
TOLD = "It takes 2 hours."
VERBS, ENDS = ("switch", "turn"), (", please?", "? Thank you")


@policy("learner", [{"shadow_share": 1.0, "answer": "In the menu."}], indirect=True)
async def test_hit_is_answered_afresh_when_it_is_sampled(learner: Learner) -> None:
    """The same answer makes a right label; the client is served the stored one and pays nothing."""
    entry = await learner.store("in the menu")
    response = await learner.ask(REWORDED)
    assert response.headers["x-strata-cache"] == "semantic"
    assert len(learner.backend.calls) == 1, "the shadow's own"
    (label,) = learner.labels
    assert (label.right, label.served, label.source, label.method) == (
        True, True, "shadow", "normalised",
    )  # fmt: skip
    assert (label.entry_id, label.text, label.stored_text) == (entry, REWORDED, STORED)
    assert (label.weight, label.intent) == (1.0, "general")
    assert label.score == pytest.approx(float(response.headers["x-strata-score"]), rel=1e-4)
    stats = (await learner.client.get("/admin/stats")).json()
    assert stats["requests"] == 1, "a shadow is no request of anybody"
    labelled = 'strata_hits_labelled_total{intent="general",source="shadow",verdict="right"}'
    assert await learner.metric(labelled) == "1.0"


@policy("learner", [{"shadow_share": 1.0, "answer": "There are 12."}], indirect=True)
async def test_pair_is_not_served_again_when_its_shadow_differs(learner: Learner) -> None:
    """The entry stays for its own question."""
    await learner.store("There are 13.")
    assert (await learner.ask(REWORDED)).headers["x-strata-cache"] == "semantic"
    assert [label.right for label in learner.labels] == [False]
    assert (await learner.ask(REWORDED)).headers["x-strata-cache"] == "miss"
    assert (await learner.ask(STORED)).headers["x-strata-cache"] == "exact"


@policy("learner", [{"shadow_share": 1.0, "answer": "Something about quite another matter"}],
        indirect=True)  # fmt: skip
async def test_no_label_is_made_when_the_answers_cannot_be_told_apart(learner: Learner) -> None:
    """It is counted as undecided."""
    await learner.store("Whatever words stand here")
    assert (await learner.ask(REWORDED)).headers["x-strata-cache"] == "semantic"
    assert learner.labels == []
    compared = 'strata_answers_compared_total{source="shadow",verdict="undecided"}'
    assert await learner.metric(compared) == "1.0"


@policy("learner", [{"shadow_share": 1.0}], indirect=True)
async def test_exact_repeat_is_never_explored(learner: Learner) -> None:
    """Nor what the client wants from the cache alone, or kept out of it."""
    await learner.store("made")
    assert (await learner.ask(STORED)).headers["x-strata-cache"] == "exact"
    for control in ("only-if-cached", "no-store"):
        response = await learner.ask(REWORDED, cache_control=control)
        assert response.headers["x-strata-cache"] == "semantic"
    assert learner.backend.calls == []
    assert learner.labels == []


@policy("learner", [{"answer": TOLD}, {"answer": "It takes 3 hours."}], indirect=True)
async def test_near_miss_is_compared_when_its_answer_was_generated_anyway(
    learner: Learner,
) -> None:
    """At no call more; the label says that nobody was served it."""
    await learner.store(TOLD)
    response = await learner.ask(REWORDED, **{"x-strata-threshold": "1.0"})
    assert response.headers["x-strata-cache"] == "miss"
    assert len(learner.backend.calls) == 1
    answer = response.json()["choices"][0]["message"]["content"]
    (label,) = learner.labels
    assert (label.source, label.served, label.right) == ("gray", False, answer == TOLD)
    assert 0 < label.score < 1
    assert await learner.metric("strata_hits_labelled_total{") is None, "no hit was labelled"


@policy("learner", [{"gray_share": 0.0}], indirect=True)
async def test_nothing_is_compared_when_the_shares_are_nothing(learner: Learner) -> None:
    """Learning is the operator's choice."""
    await learner.store("made")
    await learner.ask(REWORDED, **{"x-strata-threshold": "1.0"})
    await learner.ask(f"{REWORDED} Thanks.")
    assert learner.labels == []


async def test_pair_is_a_miss_when_feedback_says_it_was_wrong(learner: Learner) -> None:
    """For this question only, and however often the entry is written anew."""
    entry = await learner.store("made")
    response = await learner.ask(REWORDED)
    told = await learner.say("wrong", request_id=response.headers["x-request-id"], note="no")
    assert told == {
        "verdict": "wrong", "request_id": response.headers["x-request-id"], "entry": entry,
        "intent": "general", "labelled": True, "dropped": "pair",
    }  # fmt: skip
    refused = await learner.client.post("/admin/cache/lookup", json={"request": body(REWORDED)})
    assert refused.json()["outcome"] == "miss"
    assert refused.json()["candidates"][-1]["reasons"][0]["check"] == "feedback"
    await learner.store("made again")
    assert (await learner.ask(REWORDED.upper())).headers["x-strata-cache"] == "miss"
    assert (await learner.ask(STORED)).headers["x-strata-cache"] == "exact"
    other = await learner.ask("How do I switch on updates?")
    assert other.headers["x-strata-cache"] == "semantic"
    labelled = 'strata_hits_labelled_total{intent="general",source="feedback",verdict="wrong"}'
    assert await learner.metric(labelled) == "1.0"


async def test_complaint_is_one_of_all_hits_since_the_last_word(learner: Learner) -> None:
    """Hits that nobody spoke of are counted once, whoever thinks again."""
    await learner.store("made")
    for i in range(3):
        await learner.ask(f"{REWORDED} Thanks{'!' * i}", **{"x-strata-intent": "code"})
        await learner.ask(REWORDED)
    hit = await learner.ask(REWORDED)
    assert hit.headers["x-strata-cache"] == "semantic"
    about = {"request_id": hit.headers["x-request-id"]}
    await learner.say("right", **about)
    assert [label.silent for label in learner.labels] == [3]
    await learner.ask(REWORDED)
    await learner.say("wrong", **about)
    assert [(label.right, label.silent) for label in learner.labels] == [(False, 4)]


async def test_intent_falls_back_when_people_complain_too_often(learner: Learner) -> None:
    """What stops is the intent's serving of other wordings, not just the pairs complained of."""
    await learner.store("made")
    starts = [f"{how} I {verb} on updates" for how in ("How can", "How do") for verb in VERBS]
    hits = [await learner.ask(f"{start}{end}") for start in starts for end in ENDS]
    assert {hit.headers["x-strata-cache"] for hit in hits} == {"semantic"}
    for hit in hits:
        await learner.say("wrong", request_id=hit.headers["x-request-id"])
    await learner.gateway.evidence.trainer.learn()
    intents = learner.gateway.evidence.tuner.calibration.intents
    assert (intents["general"].source, intents["general"].drifted) == ("tightened", True)
    assert intents["general"].threshold > intents["code"].threshold


async def test_last_verdict_holds_when_a_person_thinks_again(learner: Learner) -> None:
    """One label per person and pair; a pair that is right after all is served again."""
    await learner.store("made")
    response = await learner.ask(REWORDED)
    about = {"request_id": response.headers["x-request-id"]}
    await learner.say("wrong", **about)
    await learner.say("right", **about, source="review")
    assert [(label.right, label.source) for label in learner.labels] == [(True, "review")]
    assert (await learner.ask(REWORDED)).headers["x-strata-cache"] == "semantic"


async def test_entry_is_gone_when_its_own_answer_was_wrong(learner: Learner) -> None:
    """An exact hit, or the answer that was generated and stored."""
    await learner.store("made up")
    exact = await learner.ask(STORED)
    assert (await learner.say("wrong", request_id=exact.headers["x-request-id"]))[
        "dropped"
    ] == "entry"
    missed = await learner.ask(STORED)
    assert missed.headers["x-strata-cache"] == "miss"
    told = await learner.say("wrong", request_id=missed.headers["x-request-id"])
    assert (told["dropped"], told["labelled"]) == ("entry", False)
    assert (await learner.ask(STORED)).headers["x-strata-cache"] == "miss"
    labelled = 'strata_hits_labelled_total{intent="general",source="feedback",verdict="wrong"}'
    assert await learner.metric(labelled) == "1.0"


async def test_entry_and_its_latest_hit_are_judged_when_the_entry_is_named(
    learner: Learner,
) -> None:
    """A wrong entry is gone for everybody."""
    entry = await learner.store("made")
    await learner.ask(REWORDED)
    told = await learner.say("right", entry=entry)
    assert (told["labelled"], told["dropped"]) == (True, None)
    told = await learner.say("wrong", entry=entry)
    assert (told["labelled"], told["dropped"]) == (True, "entry")
    assert [label.right for label in learner.labels] == [False]
    assert (await learner.ask(STORED)).headers["x-strata-cache"] == "miss"


async def test_near_miss_is_labelled_when_a_request_and_its_candidate_are_named(
    learner: Learner,
) -> None:
    """What a reviewer says of an answer that was not served."""
    entry = await learner.store("Whatever words stand here")
    missed = await learner.ask(REWORDED, **{"x-strata-threshold": "1.0"})
    told = await learner.say("right", request_id=missed.headers["x-request-id"], entry=entry)
    assert told["labelled"]
    (label,) = learner.labels
    assert (label.right, label.served, label.source) == (True, False, "feedback")


@pytest.mark.parametrize(
    ("said", "status", "field"),
    [
        ({"verdict": "maybe", "request_id": "x"}, 400, "verdict"),
        ({"request_id": "x"}, 400, "verdict"),
        ({"verdict": "wrong"}, 400, "request_id"),
        ({"verdict": "wrong", "request_id": ""}, 400, "request_id"),
        ({"verdict": "wrong", "request_id": 7}, 400, "request_id"),
        ({"verdict": "wrong", "request_id": "x", "nope": 1}, 400, "nope"),
        ({"verdict": "wrong", "request_id": "unheard-of"}, 404, "request_id"),
        ({"verdict": "right", "entry": "unheard-of"}, 404, "entry"),
        ({"verdict": "wrong", "entry": "unheard-of"}, 404, "entry"),
    ],
)
async def test_feedback_is_refused_when_it_names_nothing_known(
    learner: Learner, said: dict[str, Any], status: int, field: str
) -> None:
    """One clear error that names the field."""
    response = await learner.client.post(FEEDBACK, json=said)
    assert response.status_code == status, response.text
    assert response.json()["error"]["param"] == field


async def test_intent_stays_as_it_is_when_one_answer_was_wrong(learner: Learner) -> None:
    """One complaint is about one pair; who is content says nothing."""
    before = (await learner.client.get("/admin/intents/general")).json()["threshold"]
    await learner.store("made")
    response = await learner.ask(REWORDED)
    await learner.say("wrong", request_id=response.headers["x-request-id"])
    await learner.gateway.evidence.trainer.learn()
    after = (await learner.client.get("/admin/intents/general")).json()
    assert (after["threshold"], after["source"]) == (before, "prior")
    assert learner.gateway.evidence.trainer.estimates["general"].num == 1


async def test_threshold_learns_when_many_labels_say_the_same(learner: Learner) -> None:
    """Proven wrong ones tighten it; the curve, the stats and the metrics tell of the labels."""
    labels, scorer = learner.gateway.evidence.labels, learner.gateway.parts.cache.scorer
    now = time.time() - 100
    for at in range(60):
        await labels.add(
            Label(
                label_id=f"{at}", intent="general", score=0.97, right=at % 2 == 0, source="review",
                served=True, at=now + at, scorer=scorer, entry_id=f"e{at}", text=f"q{at}",
            )
        )  # fmt: skip
    await learner.gateway.evidence.trainer.learn()
    shown = (await learner.client.get("/admin/intents/general")).json()
    assert (shown["source"], shown["threshold"] > 0.97) == ("tightened", True)
    assert learner.gateway.parts.cache.thresholds.of("general") == shown["threshold"]
    stats = (await learner.client.get("/admin/stats")).json()["wrong_hits"]["general"]
    assert (stats["labels"], stats["share"]) == (60, pytest.approx(0.5))
    assert stats["low"] < 0.5 < stats["high"]
    ratio = 'strata_wrong_hit_ratio{bound="point",intent="general"}'
    assert float(await learner.metric(ratio) or 0) == pytest.approx(0.5)
    curve = (await learner.client.get("/admin/intents/general/curve")).json()
    assert curve["labels"] == 60
    shares = [point["hit_share"] for point in curve["points"]]
    assert shares == sorted(shares)
    assert curve["points"][-1]["wrong_share"] == pytest.approx(0.5)
    assert curve["threshold"] == shown["threshold"]
