"""What is measured, named or grown by is told apart, and rewordings of it are not."""

import pytest

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import ruling
from semantic_layer.text.analysis import analyse


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("半小时的有氧运动消耗多少热量？", "一个半小时的有氧运动消耗多少热量？"),
        ("半米是多少厘米", "一米半是多少厘米"),
        ("HTTP 默认端口是多少？", "HTTPS 默认端口是多少？"),
        ("GP 是什么", "GPS 是什么"),
        ("RTX 4060 多少钱", "RTX 4060 Ti 多少钱"),
        ("iPhone 5多少钱", "iPhone 5s多少钱"),
        ("How much memory does the RTX 4060 have?", "How much memory does the RTX 4060 Ti have?"),
        ("利润增加到30%是什么意思？", "利润增加了30%是什么意思？"),
        ("Why did the price fall to $20?", "Why did the price fall by $20?"),
        ("日本的首都是哪里？", "日本最大的城市是哪个？"),
        ("长江全长多少公里？", "长江有多少公里宽？"),
        ("抵押贷款怎么办理？", "质押贷款怎么办理？"),
    ],
)
def test_a_pair_is_vetoed_when_its_measure_differs(one: str, other: str) -> None:
    """Either way round, a guard refuses what a score would let pass."""
    for here, there in ((one, other), (other, one)):
        assert ruling(compare(analyse(here), analyse(there))).veto is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("一个半小时能跑多远", "90分钟能跑多远"),
        ("一斤半米煮多少水？", "1.5斤米煮多少水"),
        ("2026年12月1日是星期几？", "2026-12-01是星期几？"),
        ("RTX 4060 Ti 多少钱", "RTX4060Ti 多少钱"),
        ("榴槤怎么挑", "榴莲怎么挑"),
    ],
)
def test_a_pair_is_not_vetoed_when_only_its_writing_differs(one: str, other: str) -> None:
    """Numbers, dates and names written otherwise stay the same."""
    assert ruling(compare(analyse(one), analyse(other))).veto is None
