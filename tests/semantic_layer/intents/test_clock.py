"""What time it is: never an answer from before."""

import pytest

from semantic_layer.intents.clock import asks_the_clock
from semantic_layer.outcome import Bypass
from semantic_layer.request import CacheControl
from tests.fakes.house import House, query


@pytest.mark.parametrize(
    "text",
    [
        "What time is it?",
        "What is the time?",
        "what's the time right now",
        "What time is it now in New York, USA?",
        "Tell me the current time in Paris",
        "现在几点了？",
        "请问现在几点",
        "东京现在是几点？",
        "现在的时间是？",
    ],
)
def test_clock_is_asked_when_the_time_of_now_is(text: str) -> None:
    """Here or elsewhere, in English and Chinese."""
    assert asks_the_clock(text)


@pytest.mark.parametrize(
    "text",
    [
        "What time is the match?",
        "What is the time complexity of quicksort?",
        "What is the time zone of Peru?",
        "What is time?",
        "What time is it when an elephant sits on a fence?",
        "银行几点开门",
        "火车几点到",
        "现在完成时是什么时间",
    ],
)
def test_clock_is_not_asked_when_another_time_is(text: str) -> None:
    """Opening hours, riddles and physics."""
    assert not asks_the_clock(text)


async def test_cache_takes_no_part_when_the_clock_is_asked() -> None:
    """Nothing is found and nothing kept; a caller that names an intent knows better."""
    house = House()
    outcome = await house.ask("What time is it?")
    assert isinstance(outcome, Bypass)
    assert outcome.judgement.reasons[-1].detail == "what time it is is never cached"
    told = await house.cache.inspect(query("What time is it?"), CacheControl(intent="factual"))
    assert told.outcome == "miss"
