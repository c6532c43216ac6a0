"""The search for an entry that may answer: what is read, compared and verified, and how often."""

from semantic_layer.decision import Judge
from semantic_layer.models.scorer import BUNDLED, Scorer
from semantic_layer.nearest import MOST_COMPARED
from semantic_layer.outcome import Hit, Miss
from semantic_layer.policy import CachePolicy
from semantic_layer.resources import load_json
from semantic_layer.weighing import Found
from tests.fakes.house import House
from tests.fakes.verifier import FakeVerifier
from tests.semantic_layer.entries import entry_of

ASKED = "How do I apply for a refund?"
FAR = "What must I do to get my money back?"
OTHERS = [f"{FAR[:-1]} for {thing}?" for thing in ("apples", "books", "cups", "dolls", "eggs")]
SCORER = Scorer.of(load_json(BUNDLED))


async def test_nothing_is_verified_twice_when_the_search_goes_on() -> None:
    """The wider search goes on where the first one ended: each pair costs one score."""
    verifier = FakeVerifier()
    house = House(verifier=verifier, policy=CachePolicy(top_k=2, top_k_wide=4))
    for text in OTHERS[:4]:
        await house.seed(text)
    verifier.asked.clear()
    assert isinstance(await house.ask(ASKED), Miss)
    asked = [text for texts in verifier.asked for text in texts]
    assert len(asked) == len(set(asked)) == 4


async def test_search_ends_when_five_were_refused() -> None:
    """A wider search reads nothing more once the verifier has refused as many as it may."""
    verifier = FakeVerifier()
    house = House(verifier=verifier, policy=CachePolicy(top_k=5, top_k_wide=6))
    for text in [FAR, *OTHERS]:
        await house.seed(text)
    missed = await house.ask(ASKED)
    assert isinstance(missed, Miss)
    assert len(missed.judgement.candidates) == 5


async def test_farther_entry_is_served_when_the_nearest_are_refused_by_guards() -> None:
    """Entries that differ in a number never hide one behind them."""
    house = House(verifier=FakeVerifier(), policy=CachePolicy(top_k=2, top_k_wide=8))
    for text in ("Is 12 a prime number?", "Is 13 a prime number?", "Is 17 a prime number?"):
        await house.seed(text)
    assert isinstance(await house.ask("hi, is 17 a prime number?"), Hit)


async def test_verifier_is_not_asked_when_texts_are_far_apart() -> None:
    """Under the scorer's bounds no score is worth its time; the nearest has a lower one."""
    for similarity, asked in ((SCORER.least_nearest - 0.001, []), (SCORER.least_nearest, [[FAR]])):
        verifier = FakeVerifier()
        found = [Found(similarity, entry_of(text, text)) for text in (FAR, OTHERS[0])]
        decision = await Judge(SCORER, verifier=verifier).decide(ASKED, 0.9, found)
        assert decision.entry is None
        assert verifier.asked == asked


async def test_no_other_is_compared_when_rules_serve_the_nearest() -> None:
    """A repeat costs one comparison, however many entries are near."""
    found = [Found(0.99, entry_of(ASKED.lower(), "a")), Found(0.95, entry_of(FAR, "b"))]
    decision = await Judge(SCORER, verifier=FakeVerifier()).decide(ASKED, 0.9, found)
    assert decision.entry is not None
    assert decision.judgement.candidates[1].reasons[-1].verdict == "skip"


async def test_work_is_bounded_when_many_long_chats_are_stored() -> None:
    """One look-up compares its history with so many messages, those of the nearest chats first."""

    def chat(number: int, last: str) -> list[dict[str, str]]:
        said = [f"Parcel {number} of shelf {place} holds {place + 2} cups." for place in range(60)]
        roles = ["user", "assistant"] * 30
        history = [{"role": r, "content": text} for r, text in zip(roles, said, strict=True)]
        return [*history, {"role": "user", "content": last}]

    house = House(policy=CachePolicy(top_k=4, top_k_wide=12))
    for number in range(8):
        await house.seed("", messages=chat(number, "How much does it weigh?"))
    missed = await house.ask("", messages=chat(9, "How much does it weigh?"))
    assert isinstance(missed, Miss)
    details = [each.reasons[-1].detail for each in missed.judgement.candidates]
    assert len(details) == 8
    left_out = [detail for detail in details if detail.startswith("not compared")]
    assert len(left_out) == 8 - MOST_COMPARED // 60


async def test_longest_chat_is_compared_when_it_is_the_nearest() -> None:
    """A chat longer than the bound still hits its like."""
    said = [f"Parcel {place} holds {place + 2} cups." for place in range(MOST_COMPARED + 2)]
    roles = ["user", "assistant"] * (len(said) // 2)
    history = [{"role": r, "content": text} for r, text in zip(roles, said, strict=True)]
    asked = {"role": "user", "content": "How much does it weigh?"}
    house = House()
    await house.seed("", messages=[*history, asked])
    hi = [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello!"}]
    assert isinstance(await house.ask("", messages=[*hi, *history, asked]), Hit)
