"""What an intent's rule leaves of a look-up and of a store."""

import pytest

from semantic_layer.intents.intent_rules import IntentRule
from semantic_layer.outcome import Bypass, Hit, Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.request import CacheControl
from semantic_layer.stores.vector_index import Vector
from tests.fakes.house import House, layer, query

SEED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"


def of_intent(name: str, rule: IntentRule) -> House:
    """A cache that takes every text for one of this intent."""
    return House(policy=CachePolicy(intents={name: rule}), detect=lambda *_: name)


async def test_answer_serves_exact_repeats_only_when_its_intent_is_not_for_likeness() -> None:
    """Nothing is found by likeness, nothing is put where likeness looks, the reason is told."""
    house = of_intent("mine", IntentRule(semantic=False))
    await house.seed(SEED)
    assert await house.index.count() == 0
    assert layer(await house.ask(SEED)) == "exact"
    outcome = await house.ask(REWORDED)
    assert isinstance(outcome, Miss)
    assert [(r.check, r.detail) for r in outcome.judgement.reasons] == [
        ("intent", "mine answers exact repeats only")
    ]


async def test_request_bypasses_when_its_intent_is_never_cached() -> None:
    """The cache takes no part: nothing is found, kept or imported, and the intent is told."""
    house = of_intent("order", IntentRule(cacheable=False))
    outcome = await house.ask(SEED)
    assert isinstance(outcome, Bypass)
    assert outcome.judgement.intent == "order"
    assert (await house.cache.inspect(query(SEED), CacheControl())).outcome == "bypass"
    inserted = await house.cache.insert(query(SEED), CacheControl(), b"x", answer_text="x")
    assert inserted is None
    assert await house.store.count() == 0


async def test_rule_is_the_named_intents_when_the_caller_names_one() -> None:
    """A named intent is not detected again, and spares the embedding where it is not needed."""
    house = of_intent("mine", IntentRule(semantic=False))
    await house.seed(SEED, CacheControl(intent="mine"))
    assert house.embedder.num_texts == 0
    assert layer(await house.ask(SEED)) == "exact"
    assert isinstance(await house.ask(REWORDED, CacheControl(intent="general")), Miss)
    assert house.embedder.num_texts == 1


async def test_intent_is_judged_by_the_vector_when_there_is_one() -> None:
    """The detector is given the look-up's own vector; none when the embedder is down."""
    seen: list[bool] = []

    def detect(text: str, vector: Vector | None) -> str:
        seen.append(vector is not None)
        return "general"

    house = House(detect=detect)
    await house.ask(SEED)
    house.embedder.down = True
    await house.ask(REWORDED)
    assert seen == [True, False]
    assert house.embedder.num_texts == 1


async def test_ttl_is_the_intents_when_its_rule_has_one() -> None:
    """An exact repeat follows its intent's TTL too, and a hit never prolongs it."""
    house = of_intent("news", IntentRule(ttl_s=30))
    await house.seed(SEED)
    house.clock.now += 29
    assert isinstance(await house.ask(SEED), Hit)
    house.clock.now += 2
    assert isinstance(await house.ask(SEED), Miss)


TOLD = "You have 4 guest passes a month, and 3 of them are used."
ASKED = "so how many guest passes have I got left this month?"


@pytest.mark.parametrize(
    ("told", "last", "found"),
    [
        (TOLD, "So how many guest passes have I got left this month", "semantic"),
        (TOLD.replace("3", "2"), ASKED, "miss"),
        ("Hello, what can I do for you?", ASKED, "miss"),  # nothing of anybody's was told
        (TOLD, "How many guest passes have I got left this month?", "miss"),  # said by itself
    ],
)
async def test_question_about_records_is_found_by_likeness_where_the_chat_told_them(
    told: str, last: str, found: str
) -> None:
    """Both chats went on from the same figures; without them only an exact repeat is served."""
    house = of_intent("mine", IntentRule(semantic=False, in_chats=True))
    await house.seed("", messages=chat("Hi, how do guest passes work?", TOLD, ASKED))
    asked = chat("Hi, how do guest passes work?", told, last)
    assert layer(await house.ask("", messages=asked)) == found


def chat(opening: str, told: str, last: str) -> list[dict[str, str]]:
    """A chat of three messages."""
    roles = ("user", "assistant", "user")
    return [{"role": r, "content": t} for r, t in zip(roles, (opening, told, last), strict=True)]
