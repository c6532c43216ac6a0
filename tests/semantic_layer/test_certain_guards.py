"""Certain vetoes: kinds of field cases by name, and what retyping must never bring about."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from semantic_layer.comparison.edits import compare
from semantic_layer.comparison.guards import findings, first_veto, ruling
from semantic_layer.text.analysis import analyse

ENDINGS = [
    ("Who directed the movie Alien?", "Who directed the movie Aliens?"),
    ("Where is the town of Wells?", "Where is the town of Well?"),
    ("What is the plot of The Hour?", "What is the plot of The Hours?"),
]
# Kinds of field cases S03, S05 and S07 and the same in Chinese.
CERTAIN = {
    "polarity": [
        ("Is the shop open at 7 am?", "Is the shop open at 7 pm?"),
        ("How do I turn on updates in Safari?", "How do I turn off updates in Safari?"),
        ("What are the advantages of slate roofs?", "What are the disadvantages of slate roofs?"),
        ("How do I widen a PDF margin?", "How do I narrow a PDF margin?"),
        ("Is a public repository free?", "Is a private repository free?"),
        ("Which mushrooms are edible?", "Which mushrooms are inedible?"),
        ("Why is my laptop charging so slowly?", "Why is my laptop charging so quickly?"),
        ("怎么打开蓝牙？", "怎么关闭蓝牙？"),
        ("公司入职需要哪些材料", "公司离职需要哪些材料"),
        ("饭前吃药还行吗", "饭后吃药还行吗"),
        ("怎麼解鎖信用卡", "怎么锁定信用卡"),
    ],
    "negation": [
        ("Which berries are safe to eat?", "Which berries are not safe to eat?"),
        ("Is it legal to film with consent?", "Is it legal to film without consent?"),
        ("哪些蘑菇可以生吃？", "哪些蘑菇不可以生吃？"),
    ],
    "numbers": [
        ("Convert 12 gallons to liters.", "Convert 21 gallons to liters."),
        ("What changed in Node 20.1?", "What changed in Node 20.2?"),
        ("What is 18 * 35?", "What is 18 * 53?"),
        ("Plan a 2-day trip to Oslo.", "Plan a four-day trip to Oslo."),
        ("Set an alarm for 1.5 hours", "Set an alarm for 15 hours"),
        ("把15公斤换成磅", "把50公斤换成磅"),
        ("2018年谁夺冠", "2019年谁夺冠"),
    ],
    "exclusive": [
        ("Convert 12 miles to yards.", "Convert 12 miles to meters."),
        ("Is it open on monday?", "Is it open on saturday?"),
        ("Explain recursion in French", "Explain recursion in Spanish"),
        ("周一开门吗", "周二开门吗"),
        ("用英语解释递归", "用法语解释递归"),
    ],
    "direction": [
        ("Translate 'hi' from Polish into Czech.", "Translate 'hi' from Czech into Polish."),
        ("How many inches are in a foot?", "How many feet are in an inch?"),
        ("Write a note from a nurse to a doctor.", "Write a note from a doctor to a nurse."),
        ("Does stress cause pain?", "Does pain cause stress?"),
        ("把英镑换成韩元怎么算？", "把韩元换成英镑怎么算？"),
        ("医生怎么评价护士？", "护士怎么评价医生？"),
    ],
    "person": [
        ("Proofread my cover letter.", "Proofread your cover letter."),
        ("What is his salary?", "What is her salary?"),
        ("修改我的论文", "修改你的论文"),
    ],
    "names": [("Do you deliver to Hackney?", "Do you deliver to Hounslow?")],
    "payload": [
        ("What does `ls -l` do?", "What does `ls -a` do?"),
        ('Translate "good night" now', 'Translate "good morning" now'),
        ("把“晚安”翻译一遍", "把“早安”翻译一遍"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("check", "one", "other"),
    [
        (check, *texts)
        for check, pairs in CERTAIN.items()
        for pair in pairs
        for texts in (pair, pair[::-1])
    ],
)
def test_veto_is_certain_when_one_thing_changed_and_all_else_agrees(
    check: str, one: str, other: str
) -> None:
    """Kinds of S03, S05 and S07: named for certain, whichever text was stored first."""
    reason = ruling(compare(analyse(one), analyse(other))).veto
    assert reason is not None
    assert (reason.check, reason.verdict) == (check, "veto")
    assert reason.detail


# Kinds of field case S01 and the controls of S03, S05 and S07; amounts said otherwise.
SAME = [
    ("How do I reset the password on my router?", "What's the way to reset my router's password?"),
    ("What is the boiling point of ethanol?", "At what temperature does ethanol boil?"),
    ("How do I turn on updates in Firefox?", "How can I switch on updates in Firefox?"),
    ("Is Jupiter larger than Saturn?", "Is Jupiter bigger than Saturn?"),
    ("What compensation for a 48 hours outage?", "What compensation for a two-day outage?"),
    ("Wake me at 2pm", "Wake me at 14:00"),
    ("Book a table for 7:30 pm", "Book a table for half seven pm"),
    ("Why was I charged £49.99?", "Why was I charged forty-nine ninety-nine?"),
    ("Can I wait half an hour?", "Can I wait 30 minutes?"),
    ("My parcel came a fortnight late", "My parcel came 14 days late"),
    ("Book a room from 3 to 7 May", "book room 3-7 may"),
    ("Tax on £45k in 2024-25", "Tax on 45,000 pounds in 2024 to 2025"),
    ("Resign from the 1st of June", "Resign from June 1"),
    ("How much is it for 12 months?", "How much is it for 1 year?"),
    ("cancel standing order 2 landlord", "Cancel the standing order to my landlord"),
    ("How many weeks are in 1 year?", "How many weeks are in a year?"),
    ("Who is the president of France?", "Name the French president"),
    ("compare SSD vs HDD longevity", "SSD and HDD longevity comparison"),
    ("What are ways to surprise your girlfriend?", "How do I surprise my girlfriend?"),
    ("Is Ann taller than Bob?", "Is Bob shorter than Ann?"),
    ("10万块存一年利息多少", "100000元存1年利息多少"),
    ("孩子烧到三十八度二怎么办", "孩子烧到38.2度怎么办"),
    ("昨晚11点存的钱没到账", "昨晚23点存的钱没到账"),
    ("外卖迟到半小时能赔多少", "外卖迟到30分钟能赔多少"),
    ("杜甫比李白小几岁？", "李白比杜甫大几岁？"),
    ("Windows 11 怎么退回 Windows 10", "怎么把Windows 11退回Windows 10"),
    ("怎麼取消訂閱？", "怎么取消订阅"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), [texts for p in SAME for texts in (p, p[::-1])])
def test_no_veto_is_certain_when_the_same_is_said_otherwise(one: str, other: str) -> None:
    """Kinds of S01: rewordings, and amounts in other units or in words, are let through."""
    assert ruling(compare(analyse(one), analyse(other))).veto is None


TEXTS = [
    "How do I turn on automatic updates in Firefox?",
    "What is the boiling point of ethanol at 2 bar?",
    "Is it legal to record a call without consent?",
    "I can't log in to my account, what should I do?",
    "Write a complaint from a tenant to a landlord.",
    "Please convert fifteen miles to kilometers.",
    "Do you deliver to Hackney on Saturday at 7 am?",
    "Which mushrooms are not safe to eat raw?",
    "怎么打开蓝牙？",
    "从北京到上海怎么走",
    "怎么取消订阅并申请退款",
    "2018年谁夺冠",
]
CONTRACTED = {"can't": "cannot", "What is": "What's", "Do you": "D'you", "Is it": "Is it"}


@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=200, deadline=None)
def test_nothing_is_found_when_a_text_is_typed_otherwise(text: str, data: st.DataObject) -> None:
    """Case, final marks, width, white space and contractions are no difference."""
    retyped = text
    if data.draw(st.booleans()):
        retyped = retyped.lower()
    if data.draw(st.booleans()):
        retyped = retyped.rstrip("?.？")
    if data.draw(st.booleans()):
        retyped = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in retyped)
    if data.draw(st.booleans()):
        retyped = "  " + retyped.replace(" ", data.draw(st.sampled_from([" ", "  ", "\n"])))
    for short, long in CONTRACTED.items():
        retyped = retyped.replace(short, long)
    assert first_veto(compare(analyse(text), analyse(retyped))) is None
    assert first_veto(compare(analyse(retyped), analyse(text))) is None


@given(st.sampled_from([text for text in TEXTS if text.isascii()]), st.data())
@settings(max_examples=200, deadline=None)
def test_no_veto_is_certain_when_a_long_word_is_misspelt(text: str, data: st.DataObject) -> None:
    """A slip in a word of seven letters or more turns nothing round."""
    words = text.split(" ")
    long_ones = [i for i, word in enumerate(words) if word.isalpha() and len(word) > len("letter")]
    assume(long_ones)
    place = data.draw(st.sampled_from(long_ones))
    word = words[place]
    at = data.draw(st.integers(1, len(word) - 2))
    slip = data.draw(st.sampled_from(["drop", "double", "swap"]))
    words[place] = {
        "drop": word[:at] + word[at + 1 :],
        "double": word[:at] + word[at] + word[at:],
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[slip]
    assert (
        ruling(compare(analyse(text), analyse(" ".join(words)), lambda w: w == word.lower())).veto
        is None
    )


@given(
    st.lists(
        st.sampled_from([t for ps in CERTAIN.values() for p in ps for t in p]),
        min_size=2,
        max_size=2,
    )
)
@settings(max_examples=150, deadline=None)
def test_both_orders_give_the_same_guards_when_any_two_texts_meet(texts: list[str]) -> None:
    """Which text was stored first never decides which guards speak, nor how surely."""
    one, other = (analyse(text) for text in texts)
    there, back = (
        {(name, rule.is_certain(finding)) for name, rule, finding in findings(comparison)}
        for comparison in (compare(one, other), compare(other, one))
    )
    assert there == back


@pytest.mark.parametrize(("one", "other"), ENDINGS)
def test_name_is_another_when_its_ending_is(one: str, other: str) -> None:
    """S07: a plural of a name names something else; of a common noun or a weekday it does not."""
    veto = first_veto(compare(analyse(one), analyse(other)))
    assert veto is not None
    assert veto.check == "names"
    for same in (
        ("How do I clean a window?", "How do I clean windows?"),
        ("Is the pool open on Sunday?", "Is the pool open on Sundays?"),
    ):
        assert first_veto(compare(*map(analyse, same))) is None
