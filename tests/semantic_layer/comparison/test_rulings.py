"""What guards leave to a verifier, and what they don't, in both directions."""

import pytest

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import ruling
from semantic_layer.text.analysis import analyse
from tests.semantic_layer.pairs import both_ways, knows_word


@pytest.mark.parametrize(
    ("one", "other"),
    both_ways(
        [
            ("I have 2 cats and 3 dogs, is it much?", "I have 3 cats and 2 dogs, is it much?"),
            ("Who beat Bob?", "Who did Bob beat?"),
            ("What does f'x' mean?", "What does f''x mean?"),
        ]
    ),
)
def test_finding_is_never_open_when_verifiers_overlook_it(one: str, other: str) -> None:
    """Who does what, which number goes with what, and empty strings are no matter of a score."""
    assert ruling(compare(analyse(one), analyse(other), knows_word)).veto is not None


FAR_REWORDINGS = [
    ("Can I be dismissed while on sick leave?", "May my boss sack me when I'm signed off ill?"),
    ("How do I ask for a raise without sounding greedy?", "Tactful way to say I should earn more?"),
    ("Do part-time workers get sick pay?", "If someone isn't full time, are they paid while ill?"),
    ("Is it open on Saturday?", "Do you work at the weekend, Sat to be exact?"),
    ("Why do people say 'break a leg'?", "Where does the odd stage blessing come from?"),
    ("布洛芬一天最多吃几次", "24小时之内，服布洛芬不能超过多少回"),
    ("直播间买的翡翠是假的怎么办", "主播卖给我的玉鉴定出来是赝品，还能走什么途径"),
]


@pytest.mark.parametrize(("one", "other"), both_ways(FAR_REWORDINGS))
def test_doubt_is_left_to_a_verifier_when_little_else_agrees(one: str, other: str) -> None:
    """Texts that share few words may say a difference otherwise: no guard is certain."""
    assert ruling(compare(analyse(one), analyse(other), knows_word)).veto is None
