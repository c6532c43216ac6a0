"""Which things said before a question that is whole by itself its answer may turn on."""

import pytest

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.premises import premises_of
from semantic_layer.text.script import language_of
from tests.semantic_layer.chats.told_pairs import (
    ANSWERED,
    HARMLESS,
    OTHER_PREMISES,
    TOLD_TO_PROVIDER,
    Exchange,
    Pair,
)


def after(told: str, question: str, answer: str = "") -> Chat:
    """Make a chat that asks a question after one exchange; the assistant else takes note."""
    noted = "好的。" if language_of(question) == "zh" else "OK."
    return Chat(question, (("user", told), ("assistant", answer or noted)))


def verdicts(one: Chat, other: Chat) -> set[str]:
    """Return whether each chat's answer may be the other's; doubts are for a verifier."""
    fits = (fit_of(one, other), fit_of(other, one))
    return {"doubt" if fit.doubts else fit.reason.verdict for fit in fits}


@pytest.mark.parametrize("pair", OTHER_PREMISES)
def test_answer_is_refused_when_another_thing_was_told_before(pair: Pair) -> None:
    """What one is or has, what words mean, how to answer, what is supposed, what was pasted."""
    here, there, question = pair
    assert verdicts(after(here, question), after(there, question)) == {"veto"}


@pytest.mark.parametrize("pair", OTHER_PREMISES)
def test_answer_fits_when_the_same_thing_was_told_before(pair: Pair) -> None:
    """The same premises in other letters are the same."""
    told, _, question = pair
    again = told.upper() if language_of(told) == "en" and len(told) < 20 else f" {told} "
    chats = after(told, question), after(again, question)
    assert verdicts(*chats) == {"pass"}


@pytest.mark.parametrize("pair", HARMLESS)
def test_answer_fits_when_only_greetings_differ(pair: Pair) -> None:
    """Greetings, thanks and small talk are no premises."""
    here, there, question = pair
    assert verdicts(after(here, question), after(there, question)) == {"pass"}


@pytest.mark.parametrize("pair", ANSWERED)
def test_answer_fits_when_other_matters_were_dealt_with(
    pair: tuple[Exchange, Exchange, str],
) -> None:
    """Questions with their answers, requests met, and troubles before a provider's own rules."""
    (here, answer), (there, other_answer), question = pair
    chats = after(here, question, answer), after(there, question, other_answer)
    assert verdicts(*chats) == {"pass"}


@pytest.mark.parametrize("pair", TOLD_TO_PROVIDER)
def test_answer_is_refused_when_a_provider_was_told_something_first(
    pair: tuple[Exchange, Exchange, str],
) -> None:
    """Who asks, for whom and where to: a provider's rules may differ by that."""
    (here, answer), (there, other_answer), question = pair
    chats = after(here, question, answer), after(there, question, other_answer)
    assert verdicts(*chats) == {"veto"}


def test_order_stays_a_premise_when_much_is_said_after_it() -> None:
    """An instruction holds however far back, and though each turn after it was met."""
    said = [("user", "From now on answer in German."), ("assistant", "Gern, das mache ich.")]
    said += [("user", "Who wrote Emma?"), ("assistant", "Jane Austen, im Jahr 1815.")] * 40
    asked = Chat("What is the tallest mountain in Africa?", tuple(said))
    plain = Chat(asked.text, tuple(said[2:]))
    assert premises_of(asked.text, asked.history) == ("From now on answer in German.",)
    assert verdicts(asked, plain) == {"veto"}


def test_order_of_premises_counts_when_the_later_one_holds() -> None:
    """Metric after imperial is not imperial after metric."""
    lines = ("Use metric units.", "Use imperial units.")
    one, other = (
        Chat(
            "How tall is Mount Kenya?",
            tuple(said for line in told for said in (("user", line), ("assistant", "OK."))),
        )
        for told in (lines, lines[::-1])
    )
    assert verdicts(one, other) == {"veto"}


def test_role_of_the_assistant_is_a_premise_when_it_answers_nothing() -> None:
    """Who greets as the help of one product answers of that product."""
    question = "How do I change the filter cartridge?"
    one, other = (
        after("Hi", question, f"Hello! This is the help desk for {name}.")
        for name in ("Aqua jugs", "Breeze hoods")
    )
    assert verdicts(one, other) == {"veto"}


def test_very_long_history_is_not_read_when_only_its_end_differs() -> None:
    """Beyond the most messages that are read, chats agree only word for word."""
    said = (("user", "Is tea hot?"), ("assistant", "Mostly, yes.")) * 200
    asked = Chat("What is the tallest mountain in Africa?", said)
    assert asked.dependence.kind == "premise"
    assert verdicts(asked, Chat(asked.text, said)) == {"pass"}
    assert verdicts(asked, Chat(asked.text, said[2:])) == {"veto"}


def test_long_text_of_a_user_is_one_premise_when_it_is_pasted() -> None:
    """Pages are compared as a whole, not read line by line; another page is another premise."""
    pages = ["Tea is drunk hot. " * 100 + f"Chapter {number} ends." for number in (1, 2)]
    one, other = (after(page, "Who wrote Pride and Prejudice?") for page in pages)
    assert one.premises == (pages[0],)
    assert verdicts(one, other) == {"veto"}


def test_nothing_is_read_when_very_much_was_said() -> None:
    """Beyond forty thousand signs only the same words are the same history."""
    said = (("user", "Is tea hot?"), ("assistant", "Mostly, yes. " * 500)) * 20
    asked = Chat("What is the tallest mountain in Africa?", said)
    assert len(asked.premises) == 1
    assert verdicts(asked, Chat(asked.text, said[2:])) == {"veto"}


def test_nothing_is_compared_when_long_chats_share_no_line() -> None:
    """A message that points back meets no chat that differs in more lines than can be read."""
    one, other = (
        Chat("Can I take it with me?", tuple(("user", f"Box {n} {i}.") for i in range(200)))
        for n in ("red", "blue")
    )
    fit = fit_of(one, other)
    assert (fit.reason.verdict, fit.reason.detail) == ("veto", "too much was said in other words")
