"""Messages whose subject stands in what was said before, and messages that name it themselves."""

import json
from pathlib import Path

import pytest

from semantic_layer.chats.chat import Chat, Said
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.subjects import names_subject

Pair = tuple[list[str], list[str], str]  # said in turn in either chat, then the last message


def pairs_of(*, same: bool) -> list[Pair]:
    """Read the pairs written for Strata whose answers are the same, or are not."""
    lines = Path(__file__).with_name("subject_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = map(json.loads, lines)
    return [(row["one"], row["other"], row["last"]) for row in rows if row["same"] == same]


OTHER_SUBJECTS = pairs_of(same=False)
OWN_SUBJECTS = pairs_of(same=True)


def chats_of(pair: Pair) -> tuple[Chat, Chat]:
    """Make both chats of a pair, user and assistant in turn."""
    one, other, last = pair
    return Chat(last, _history(one)), Chat(last, _history(other))


def _history(said: list[str]) -> tuple[Said, ...]:
    return tuple((("user", "assistant")[i % 2], text) for i, text in enumerate(said))


@pytest.mark.parametrize("pair", OTHER_SUBJECTS)
def test_answer_is_refused_or_doubted_when_the_subject_was_another_before(pair: Pair) -> None:
    """Which laptop, medicine, place, language or hotel is meant stands only in the history."""
    one, other = chats_of(pair)
    for both in ((one, other), (other, one)):
        fit = fit_of(*both)
        assert fit.reason.verdict == "veto" or fit.doubts


@pytest.mark.parametrize("pair", OTHER_SUBJECTS)
def test_answer_fits_when_the_subject_was_the_same_before(pair: Pair) -> None:
    """The same history in other letters leaves the same subject."""
    one, _ = chats_of(pair)
    again = Chat(one.text, tuple((role, f" {text} ") for role, text in one.history))
    assert fit_of(one, again).reason.verdict == "pass"


@pytest.mark.parametrize("pair", OWN_SUBJECTS)
def test_answer_fits_when_the_message_names_its_subject(pair: Pair) -> None:
    """Whatever was chatted before, or nothing was but small talk."""
    one, other = chats_of(pair)
    for both in ((one, other), (other, one)):
        fit = fit_of(*both)
        assert (fit.reason.verdict, fit.doubts) == ("pass", ()), fit


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what is the capital of france?", True),
        ("What is the capital of the country?", False),
        ("WHAT IS THE LOCAL CURRENCY?", False),
        ("What Is The Local Currency?", False),
        ("Is English widely spoken?", False),
        ("Is Uber available?", False),
        ("Is Uber available in Norway?", True),
        ("How do I install Docker?", False),
        ("How do I install Docker on Ubuntu?", True),
        ("How much is a flight to Oslo?", False),
        ("Do I need a visa for Japan?", True),
        ("到北京的高铁多少钱？", False),
        ("日本的首都是哪里？", True),
        ("怎么安装Docker？", False),
    ],
)
def test_subject_is_named_when_nothing_before_can_change_it(text: str, named: bool) -> None:
    """A place or name of its own; where to, by what means and on which system don't count."""
    assert names_subject(text) == named


def test_long_message_is_not_read_when_its_subject_is_sought() -> None:
    """A long message brings its matter along; expressions would read it in quadratic time."""
    assert names_subject("the order of " * 10_000)
