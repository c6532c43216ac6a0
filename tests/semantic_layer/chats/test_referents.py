"""Follow-ups that point back, in chats of other things and in chats of the same. Own texts."""

from itertools import permutations

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.referents import other_referent

UNRELATED = (
    "介绍一下雁荡山|雁荡山在浙江。|它的门票多少钱？",
    "首尔值得去吗？|值得，美食很有名。|那边物价高吗？",
    "推荐一款加湿器|米家的很安静。|那个噪音大吗？",
    "哪款豆浆机好？|九阳的容量大。|那个噪音大吗？",
    "我想买辆摩托车|春风的操控好。|它的续航是多少？",
    "附近有健身房吗？|有，离您一公里。|它几点关门？",
    "什么是光合作用？|植物利用光能的过程。|它有什么用？",
    "Tell me about the Rhine.|It rises in the Alps.|How long is it?",
    "Who painted the Night Watch?|Rembrandt did.|When did he die?",
    "Which vacuum cleaner is good?|The Miele C3.|How loud is it?",
)
SAME = (
    ("介绍一下雁荡山|雁荡山在浙江。|它的门票多少钱？",
     "你好|您好！|给我讲讲雁荡山|在浙江。|它的门票多少钱？"),
    ("Tell me about the Rhine.|It rises in the Alps.|How long is it?",
     "Hello|Hi!|What is the Rhine?|A river that rises in the Alps.|How long is it?"),
    ("Where is order 61254?|On its way.|When will it arrive?",
     "Any news of 61254?|It is on its way.|When will it arrive?"),
    ("你好|您好！|它的续航是多少？", "在吗|在的。|它的续航是多少？"),
)  # fmt: skip


LONG = (
    "Hi, my lodger left, can I get the single discount?|Yes, 25%. Your council tax account, please?"
    "|44129087|Thanks, the full charge for this year is 1,860.|do you need proof he left?"
    "|We may look at other records.|will my payments change?|Yes, we send a revised bill."
    "|my niece might stay next year|Those under 18 aren't counted.|the street sign is knocked over"
    "|Thanks, it is reported.|can I pay in 12 instalments?|Yes.|so how much is it per year then?"
)
UPGRADE = (
    "I'm looking at upgrading our Taskwell workspace to Pro|Pro adds timesheets and guest access."
    "|does it have gantt charts|Yes, on Pro and Business.|and do we get a bill, or single ones?"
    "|One bill, for all users.|how much is it per year?"
)


def chat_of(lines: str) -> Chat:
    *before, last = lines.split("|")
    history = tuple((("user", "assistant")[i % 2], text) for i, text in enumerate(before))
    return Chat(last, history)


@pytest.mark.parametrize("pair", list(permutations(UNRELATED, 2)))
def test_no_follow_up_fits_when_the_chats_speak_of_other_things(pair: tuple[str, str]) -> None:
    """Whatever a verifier would say of the words."""
    one, other = map(chat_of, pair)
    assert fit_of(one, other).reason.verdict == "veto"


@pytest.mark.parametrize("pair", SAME)
def test_both_speak_of_one_thing_when_a_telling_word_is_common(pair: tuple[str, str]) -> None:
    """Names, numbers and two Chinese signs side by side; none where nothing was named."""
    one, other = map(chat_of, pair)
    assert (other_referent(one, other), other_referent(other, one)) == ("", "")


def test_one_word_in_common_is_chance_when_a_chat_is_long() -> None:
    """What stands in both is some word like "bill": both must say much of what either is about."""
    long, short = chat_of(LONG), chat_of(UPGRADE)
    assert all("nothing in common" in other_referent(*pair) for pair in permutations((long, short)))
