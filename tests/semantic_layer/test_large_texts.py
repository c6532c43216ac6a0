"""What is too large to be read at once is read elsewhere, or not at all; nobody waits for it."""

import threading

import pytest

from semantic_layer.beside import LARGE_BYTES, beside_loop
from semantic_layer.chats.chat import Chat
from semantic_layer.chats.histories import fit_of
from semantic_layer.chats.premises import MOST_READ
from semantic_layer.chats.small_talk import sentences
from semantic_layer.models.embedding import most_chars
from semantic_layer.outcome import Hit, Miss
from semantic_layer.privacy import private_kind
from semantic_layer.request import CacheQuery
from tests.fakes.house import House


async def test_work_is_done_in_a_thread_when_it_is_large() -> None:
    """Only what is large pays for a thread; what is raised there is raised here."""
    here = threading.get_ident()
    assert await beside_loop(LARGE_BYTES, threading.get_ident) == here
    assert await beside_loop(LARGE_BYTES + 1, threading.get_ident) != here
    with pytest.raises(ValueError, match="invalid literal"):
        await beside_loop(LARGE_BYTES + 1, int, "x")


async def test_text_is_kept_for_exact_repeats_unread_when_no_window_can_hold_it() -> None:
    """Nobody looks at its words: not the rules, not the embedder."""
    house = House()
    text = "the order came late and the clerk said so " * 2_000
    assert len(text) > most_chars(house.embedder.window_tokens)
    missed = await house.ask(text)
    assert isinstance(missed, Miss)
    assert (missed.scope, missed.embedding) == (None, None)
    assert [reason.check for reason in missed.judgement.reasons] == ["window"]
    assert house.embedder.num_texts == 0
    await house.seed(text)
    assert isinstance(await house.ask(text), Hit)


def test_long_history_fits_itself_only_when_it_is_too_long_to_be_read() -> None:
    """Other histories of that length are refused, whatever the last message refers to."""
    said = tuple((("user", "assistant")[at % 2], f"Line {at}.") for at in range(MOST_READ + 2))
    for text in ("Yes, please.", "What about the other one?", "What is the capital of France?"):
        chat = Chat(text, said)
        assert chat.is_whole
        assert fit_of(chat, Chat(text, said)).reason.verdict == "pass"
        other = Chat(text, (("user", "Line."), *said[1:]))
        assert fit_of(chat, other).reason.verdict == "veto"


@pytest.mark.parametrize("num_bytes", [0, 100, LARGE_BYTES + 1])
async def test_secret_is_found_when_the_body_has_any_size(num_bytes: int) -> None:
    """In the loop, beside it, and where nobody knows the size."""
    request = {"messages": [{"role": "user", "content": "Use AKIAIOSFODNN7EXAMPLE"}]}
    query = CacheQuery("t", "m", "f", request, num_bytes=num_bytes)
    assert await private_kind(query, None, "") == "aws access key"


@pytest.mark.parametrize("piece", [" ", "\n ", "sk-", "the "])
def test_chat_is_read_in_linear_time_when_a_user_repeats_himself(piece: str) -> None:
    """A pattern that tries every part of a run again would take half a minute here."""
    text = (piece * 400_000)[: 5 * most_chars(512)]
    history = (("user", "I live in Paris."), ("assistant", "Nice."))
    assert Chat(f"{text}end?", history).resolved.endswith("end?")
    assert sentences(f"a.{text}b.")


@pytest.mark.parametrize("text", ["One.{}Two", "One\n{}Two", "One {}- {}Two", "One\n{}- {}Two"])
def test_sentences_are_the_same_when_gaps_are_long(text: str) -> None:
    """Blank space of any length divides as a little of it does."""
    assert sentences(text.replace("{}", " " * 30)) == sentences(text.replace("{}", " "))
    assert len(sentences(text.replace("{}", " " * 30))) == 2
