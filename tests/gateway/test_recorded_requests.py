"""What is recorded of requests, reviewed and replayed, over a gateway in memory."""

import zlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from gateway.evidence.request_log import RequestLog
from semantic_layer import MemoryJournal
from tests.gateway.learner import REQUESTS, REWORDED, STORED, Learner, opened


@pytest.fixture
async def learner(request: pytest.FixtureRequest) -> AsyncIterator[Learner]:
    """A learner with the policy that the test's parameter names."""
    async with opened(**getattr(request, "param", {})) as learner:
        yield learner


policy = pytest.mark.parametrize


async def test_requests_are_listed_with_their_reasons(learner: Learner) -> None:
    """Newest first; each in full by its id, with candidates, words and label."""
    entry = await learner.store("made")
    await learner.ask(STORED)
    semantic = await learner.ask(REWORDED)
    await learner.ask("Is the sky blue?")
    listed = await learner.listed()
    assert [request["outcome"] for request in listed] == ["miss", "semantic", "exact"]
    assert [request["question"] for request in listed] == ["Is the sky blue?", REWORDED, STORED]
    hit = listed[1]
    assert hit["id"] == semantic.headers["x-request-id"]
    assert (hit["entry"], hit["answer"], hit["stored_question"]) == (entry, "made", STORED)
    assert hit["threshold"] <= hit["score"]
    assert {"check": "guards", "verdict": "pass", "detail": ""} in hit["reasons"]
    await learner.say("right", request_id=hit["id"])
    found = (await learner.client.get(f"{REQUESTS}/{hit['id']}")).json()
    assert [candidate["entry"] for candidate in found["candidates"]] == [entry]
    assert (found["label"]["verdict"], found["label"]["source"]) == ("right", "feedback")
    missing = await learner.client.get(f"{REQUESTS}/unheard-of")
    assert missing.status_code == 404


async def test_requests_are_filtered_and_paged(learner: Learner) -> None:
    """By outcome, text, time; the cursor leads through all of them once."""
    for at in range(7):
        await learner.ask(f"Question number {at} about tea")
    await learner.ask("Question number 3 about tea")
    assert len(await learner.listed(outcome="exact")) == 1
    assert len(await learner.listed(text="NUMBER 3")) == 2
    assert len(await learner.listed(tenant="nobody")) == 0
    assert len(await learner.listed(intent="general", model="m")) == 8
    latest = (await learner.listed())[0]
    assert len(await learner.listed(since=latest["at"] + 1)) == 0
    seen, cursor = [], {}
    while True:
        page = (await learner.client.get(REQUESTS, params={"limit": 3, **cursor})).json()
        seen += [request["id"] for request in page["requests"]]
        if page["cursor"] is None:
            break
        cursor = {"cursor": page["cursor"]}
    assert len(seen) == len(set(seen)) == 8


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("outcome=hit", "outcome"),
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("cursor=x", "cursor"),
        ("cursor=-1", "cursor"),
        ("since=yesterday", "since"),
        ("since=nan", "since"),
        ("answer=x", "answer"),
        ("intent=", "intent"),
    ],
)
async def test_listing_is_refused_when_a_filter_is_bad(
    learner: Learner, query: str, field: str
) -> None:
    """A 400 that names it."""
    response = await learner.client.get(f"{REQUESTS}?{query}")
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == field


@policy("learner", [{"texts": False, "shadow_share": 1.0}], indirect=True)
async def test_no_words_are_kept_when_texts_are_off(learner: Learner) -> None:
    """Numbers, checks and verdicts are, and feedback still works."""
    await learner.store("made")
    response = await learner.ask(REWORDED)
    detail = await learner.client.get(f"{REQUESTS}/{response.headers['x-request-id']}")
    assert "updates" not in detail.text
    assert detail.json()["score"] > 0
    assert all("updates" not in repr(label) for label in learner.labels)
    await learner.say("wrong", request_id=response.headers["x-request-id"])
    assert (await learner.ask(REWORDED)).headers["x-strata-cache"] == "miss"


async def test_no_words_are_kept_when_the_client_forbids_storing(learner: Learner) -> None:
    """``no-store`` holds for the record too."""
    response = await learner.ask("A secret about tea", cache_control="no-store")
    detail = await learner.client.get(f"{REQUESTS}/{response.headers['x-request-id']}")
    assert detail.json()["outcome"] == "miss"
    assert "secret" not in detail.text


async def test_nearest_pairs_are_reviewed_first_until_they_are_labelled(learner: Learner) -> None:
    """Each pair once, with both questions and both answers; a verdict takes it off the list."""
    entry = await learner.store("Whatever words stand here")
    for _ in range(2):
        await learner.ask(REWORDED, **{"x-strata-threshold": "1.0", "cache-control": "no-store"})
    await learner.ask("Is the sky blue?")
    (item,) = (await learner.client.get("/admin/review")).json()["items"]
    assert (item["entry"], item["served"]) == (entry, False)
    assert (item["question"], item["stored_question"]) == ("", STORED)
    await learner.ask(REWORDED)
    (item,) = (await learner.client.get("/admin/review?intent=general")).json()["items"]
    assert (item["question"], item["stored_answer"], item["served"]) == (
        REWORDED, "Whatever words stand here", True,
    )  # fmt: skip
    said = {"request_id": item["request_id"], "entry": item["entry"], "source": "review"}
    await learner.say("right", **said)
    assert learner.labels[0].source == "review"
    await learner.ask(REWORDED)
    assert (await learner.client.get("/admin/review?intent=code")).json()["items"] == []
    assert (await learner.client.get("/admin/review?limit=0")).status_code == 400


async def test_replay_tells_what_the_other_threshold_then_does(learner: Learner) -> None:
    """O01: the predicted hits are those that live traffic gets, at every threshold."""
    await learner.store("made")
    texts = [f"{REWORDED}{end}" for end in ("", "!", " Thanks.")] + ["What is tea made of?"]
    for text in texts:
        await learner.ask(text, **{"cache-control": "no-store"})
    for threshold in (0.0, 0.9, 0.995, 1.0):
        replayed = await learner.client.post(
            "/admin/intents/general/replay", json={"threshold": threshold}
        )
        predicted = replayed.json()
        await learner.client.put("/admin/intents/general", json={"threshold": threshold})
        seen = [await learner.ask(text, **{"cache-control": "no-store"}) for text in texts]
        hits = [each for each in seen if each.headers["x-strata-cache"] == "semantic"]
        assert predicted["hits_after"] * len(texts) == len(hits) * predicted["num_decisions"]
    assert predicted["hits_after"] == 0
    assert predicted["num_lost"] == predicted["hits_before"] > 0
    assert predicted["lost_hits"][0]["score"] < 1.0


async def test_repeats_are_one_of_the_changed_when_a_threshold_is_tried(learner: Learner) -> None:
    """The most frequent first, each with its count; a labelled one tells its verdict apart."""
    await learner.store("made")
    for text in (f"{REWORDED}!", REWORDED, REWORDED, REWORDED):
        await learner.ask(text)
    replayed = await learner.client.post("/admin/intents/general/replay", json={"threshold": 1.0})
    lost = replayed.json()["lost_hits"]
    assert [(one["question"], one["count"]) for one in lost] == [
        (REWORDED, 3), (f"{REWORDED}!", 1),
    ]  # fmt: skip
    assert replayed.json()["num_lost"] == 4
    await learner.say("right", request_id=lost[0]["request_id"])
    replayed = await learner.client.post("/admin/intents/general/replay", json={"threshold": 1.0})
    told = {(one["verdict"], one["count"]) for one in replayed.json()["lost_hits"]}
    assert told == {(None, 1), (None, 2), ("right", 1)}


@pytest.mark.parametrize("said", ['{"threshold": NaN}', '{"threshold": 2}', "{}"])
async def test_replay_is_refused_when_its_threshold_is_none(learner: Learner, said: str) -> None:
    """Naming the field."""
    response = await learner.client.post(
        "/admin/intents/general/replay", content=said, headers={"content-type": "application/json"}
    )
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "threshold"


async def test_newest_are_read_at_a_glance_across_pages() -> None:
    """Newest first, no more than asked for; what another version wrote is left out."""
    journal = MemoryJournal()
    log = RequestLog(journal, most=1000, texts=True, scorer=str)
    sound = {"tenant": "public", "route": "/v1", "model": "m", "outcome": "miss", "seconds": 1.0}
    rows = {
        f"r{at}": zlib.compress(msgspec.msgpack.encode({"id": f"r{at}", "at": float(at), **sound}))
        for at in range(700)
    }
    await journal.put("requests", {**rows, "bad": b"?"}, most=1000)
    assert [told.at for told in await log.newest(3)] == [699.0, 698.0, 697.0]
    assert [told.at for told in await log.newest(9999)] == [float(at) for at in range(700)][::-1]
