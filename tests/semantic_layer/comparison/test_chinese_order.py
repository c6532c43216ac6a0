"""Chinese questions of the same words: what may come first, one sign of a word, what is denied."""

import pytest

from semantic_layer.comparison.chinese_order import denies_otherwise, is_fronted
from semantic_layer.comparison.edits import Comparison, compare
from semantic_layer.comparison.guards import first_veto
from semantic_layer.models.scorer import Scorer
from semantic_layer.text.analysis import analyse


def compared(one: str, other: str) -> Comparison:
    return compare(analyse(one), analyse(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("怎么煮鸡蛋？", "鸡蛋怎么煮？"),
        ("如何重置家里路由器的密码？", "家里路由器的密码怎么重置？"),
        ("微信怎样删除聊天记录", "微信聊天记录怎么删除呢"),
    ],
)
def test_questions_are_the_same_when_the_thing_comes_first(one: str, other: str) -> None:
    """Rules prove it, whichever was stored; no verifier need be asked."""
    for pair in ((one, other), (other, one)):
        assert is_fronted(compared(*pair))
        assert first_veto(compared(*pair)) is None
        assert Scorer.conservative().score(0.99, compared(*pair)) == 0.999


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("医生怎么评价护士？", "护士怎么评价医生？"),
        ("男生怎么化妆", "怎样给男生化妆？"),
        ("怎么煮鸡蛋？", "鸡蛋怎么样？"),
        ("怎么煮鸡蛋？", "鸡蛋怎么炒？"),
        ("怎么煮鸡蛋？", "怎么煮鸡蛋？"),
        ("How do I boil eggs?", "Eggs, how do I boil them?"),
    ],
)
def test_nothing_is_fronted_when_more_changed_than_the_place(one: str, other: str) -> None:
    """Who acts and who suffers, another act, the state of a thing, and English."""
    assert not is_fronted(compared(one, other))
    assert not is_fronted(compared(other, one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("轮廓的廓是什么意思？", "轮廓是什么意思啊"),
        ("聚精会神中的会是什么意思", "聚精会神的聚是什么意思？"),
        ("“相看两不厌”的“厌”是啥意思？", "相看两不厌是什么意思"),
        ("雪中送炭的意思是什么？", "雪中送炭的雪是什么意思"),
    ],
)
def test_word_is_refused_when_one_sign_of_it_is_asked_of(one: str, other: str) -> None:
    """The reason names both sides, whichever was stored."""
    for pair in ((one, other), (other, one)):
        veto = first_veto(compared(*pair))
        assert veto is not None
        assert veto.check == "sign"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("轮廓的廓是什么意思？", "轮廓中“廓”的意思是什么"),
        ("轮廓的意思是什么", "轮廓是什么意思"),
        ("您要核实转入的是什么账户呢？", "您核实一下转的是什么账户？"),
    ],
)
def test_sign_guard_is_silent_when_both_ask_of_the_same(one: str, other: str) -> None:
    """However it is put, and where no sign is asked of."""
    veto = first_veto(compared(one, other))
    assert veto is None or veto.check != "sign"


def test_texts_are_not_the_same_when_each_denies_another_thing() -> None:
    """Due and not collected, or collected before it was due."""
    one, other = "定期存款到期不取会怎么样", "定期存款没到期取了会怎么样"
    assert denies_otherwise(compared(one, other))
    assert Scorer.conservative().score(0.99, compared(one, other)) < 0.9
    assert not denies_otherwise(compared("你喜不喜欢他", "你是不是喜欢他"))
