"""Intent detection and thresholds."""

import pytest

from semantic_layer.calibration.thresholds import PRIORS, Thresholds
from semantic_layer.intents.intent import detect_intent


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("What is the capital of France?", "factual"),
        ("Who wrote Wuthering Heights?", "factual"),
        ("法国的首都是哪里？", "factual"),
        ("Translate 'good night' into German.", "translation"),
        ("How do you say thank you in Japanese?", "translation"),
        ("“晚安”用法语怎么说", "translation"),
        ("Summarize this article in three sentences: it rained.", "summarization"),
        ("总结一下这篇文章", "summarization"),
        ("Write a Python function that reverses a list.", "code"),
        ("写一个排序算法的代码", "code"),
        ("Write a short poem about rain.", "creative"),
        ("写一首关于秋天的诗", "creative"),
        ("ok then", "general"),
        ("", "general"),
    ],
)
def test_intent_is_named_when_the_text_has_its_cues(text: str, intent: str) -> None:
    """The seed intents are told apart in English and Chinese."""
    assert detect_intent(text) == intent


def test_intent_is_found_when_the_task_stands_at_the_end_of_a_long_text() -> None:
    """The task of a long text may follow its material."""
    assert (
        detect_intent("The rain fell on the hills. " * 500 + "Summarize this.") == "summarization"
    )


def test_threshold_is_the_stricter_one_when_the_caller_asks() -> None:
    """A caller can make a hit stricter, never easier."""
    thresholds = Thresholds()
    assert thresholds.of("creative", 0.5) == PRIORS["creative"]
    assert thresholds.of("general", 0.99) == 0.99


def test_threshold_is_manual_when_one_is_set() -> None:
    """A manual threshold beats a calibrated one, which beats the prior."""
    calibrated = Thresholds(calibrated={"code": 0.9})
    assert calibrated.of("code") == 0.9
    assert Thresholds(calibrated={"code": 0.9}, manual={"code": 0.8}).of("code") == 0.8
    assert Thresholds().of("code") == PRIORS["code"]
    assert Thresholds(default=0.5).of("no such intent") == 0.5
