"""Intents by vectors and words: with the bundled embedder, with a strange one, and with none."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from semantic_layer.errors import EmbedderFailed
from semantic_layer.intents.intent import detect_intent
from semantic_layer.intents.intent_classifier import IntentClassifier
from semantic_layer.intents.intent_learning import IntentTeacher, shipped_examples
from semantic_layer.models.embedding import ThreadedEmbedder, load_encoder
from tests.fakes.embedder import FakeEmbedder

SPECIAL = [
    ("what will the weather be in leeds at the weekend", "time_sensitive"),
    ("Who's the current chancellor of Germany?", "time_sensitive"),
    ("latest news about the strike", "time_sensitive"),
    ("现在的油价是多少？", "time_sensitive"),
    ("今天上海的天气如何", "time_sensitive"),
    ("where is my order", "personal"),
    ("how much money do I have in my savings account?", "personal"),
    ("我的账户余额还有多少", "personal"),
    ("transfer £50 to my sister", "transactional"),
    ("Please book me a table for four tonight", "transactional"),
    ("帮我给妈妈转三百块", "transactional"),
    ("book me a table and tell me how to get there", "transactional"),
    ("I'd like to cancel the order I placed this morning", "transactional"),
    ("wire 250 to the plumber", "transactional"),
    ("把昨天那单退了吧", "transactional"),
    ("给房东汇两千块钱", "transactional"),
    ("今晚七点订个三人位", "transactional"),
    ("订一张票，怎么去机场", "transactional"),
]
ORDINARY = [
    "How does Today show differ from Good Morning America?",
    "Right now I am learning Python, how do I sort a list?",
    "How do I get today's date in JavaScript?",
    "Translate 'what time is it now' into Spanish",
    "How do I reset my password?",
    "How can I transfer money abroad?",
    "Who was president of the United States in 1960?",
    "今天这个词是怎么来的？",
    "怎么修改我的密码？",
    "how do i reset the password on my home router",
    "how do i cancel my gym membership",
    "hi, how do i book a table",
    "so how do i get my childs exam results",
    "空调万能遥控器怎么解锁",
    "一副耳机可不可以手机电脑一起连着",
    "how to reset the password on a router",
    "请问如何取消健身房会员",
    "为什么天空是蓝色的？",
    "I'm moving abroad, how do I cancel my gym membership?",
    "What's the process for cancelling an order?",
    "闹钟在新手机上怎么设置",
    "自动续费在哪里取消",
]
PLANTS = ["is my plant thirsty", "the leaves of my fern turn brown", "how often to water a cactus"]


@pytest.fixture(scope="module")
def embedder(bundled_embedder: Path) -> Iterator[ThreadedEmbedder]:
    opened = ThreadedEmbedder(load_encoder(bundled_embedder))
    yield opened
    asyncio.run(opened.close())


async def told(names: IntentClassifier, embedder: ThreadedEmbedder, texts: list[str]) -> list[str]:
    rows = await embedder.embed(texts)
    return [names(text, row) for text, row in zip(texts, rows, strict=True)]


async def test_special_intents_are_told_when_the_embedder_is_the_bundled_one(
    embedder: ThreadedEmbedder, tmp_path: Path
) -> None:
    """What the weather, a balance or a transfer asks for is told in English and Chinese."""
    names = IntentClassifier()
    assert await IntentTeacher(embedder, {}, tmp_path).teach_bundled(names)
    texts, wanted = [text for text, _ in SPECIAL], [intent for _, intent in SPECIAL]
    assert await told(names, embedder, texts) == wanted


async def test_words_of_time_and_person_alone_make_no_special_intent(
    embedder: ThreadedEmbedder, tmp_path: Path
) -> None:
    """Questions that merely hold such words are kept as long as any other."""
    names = IntentClassifier()
    await IntentTeacher(embedder, {}, tmp_path).teach_bundled(names)
    special = {"time_sensitive", "personal", "transactional"}
    assert special.isdisjoint(await told(names, embedder, ORDINARY))


async def test_own_intent_is_told_when_examples_describe_it(
    embedder: ThreadedEmbedder, tmp_path: Path
) -> None:
    """A few examples make an intent, in other words; others stay."""
    names = IntentClassifier()
    teacher = IntentTeacher(embedder, {"plants": PLANTS}, tmp_path)
    assert await teacher.teach_bundled(names)
    asked = [
        "my tomato plant looks sad, too much water?",
        "how often should I water basil?",
        "where is my order",
    ]
    assert await told(names, embedder, asked) == ["plants", "plants", "personal"]


async def test_examples_are_embedded_once_when_the_embedder_is_strange(tmp_path: Path) -> None:
    """Weights of another embedder are never used; a fit is made, and its vectors are kept."""
    embedder, names = FakeEmbedder(), IntentClassifier()
    assert not await IntentTeacher(embedder, {}, tmp_path).teach_bundled(names)
    await IntentTeacher(embedder, {}, tmp_path).teach(names)
    labels, texts = shipped_examples()
    rows = await embedder.embed(texts)
    right = sum(names(t, r) == label for label, t, r in zip(labels, texts, rows, strict=True))
    assert right > 0.7 * len(texts)
    used = embedder.num_texts
    await IntentTeacher(embedder, {}, tmp_path).teach(names)
    assert embedder.num_texts == used


async def test_words_decide_when_nothing_is_learnt_or_embedded() -> None:
    """Without a vector, or before a fit, an intent is told by its cues."""
    embedder, names = FakeEmbedder(), IntentClassifier()
    (row,) = await embedder.embed(["What's the weather like today?"])
    assert names("What's the weather like today?", row) == "time_sensitive"
    assert names("transfer £50 to Anna", None) == "transactional"
    assert names("What is the status of my order?", None) == "personal"
    assert names("How do I change my PIN today?", None) == detect_intent("How do I change my PIN?")


async def test_teaching_goes_on_when_the_embedder_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upstream that is down at the start delays the fit and nothing else."""
    monkeypatch.setattr("semantic_layer.intents.intent_learning._PAUSE_S", 0.0)
    embedder, names = FakeEmbedder(), IntentClassifier()
    embedder.down = True
    teacher = IntentTeacher(embedder, {"mine": ["one thing", "another"]}, tmp_path)
    assert not await teacher.teach_bundled(names)
    with pytest.raises(EmbedderFailed):
        await embedder.embed(["x"])
    teaching = asyncio.create_task(teacher.teach(names))
    await asyncio.sleep(0)
    embedder.down = False
    await teaching
    (row,) = [*await embedder.embed(["one thing"])]
    assert names("one thing", row) == "mine"
