"""Prompts read by a real tokenizer: long ones in one piece, those that can't fit not at all."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.prompt_reader import PromptReader
from gateway.backends.tokenizer import Tokenizer
from gateway.errors import ContextTooLong
from prefix_layer import Ready

CONTEXT = 8_192
READY = Ready("", "any", CONTEXT, 49_152, "float32", "cpu", 16, 512)
HUGE = "pebble " * 150_000
TEXTS = st.text(max_size=200) | st.sampled_from(["     " * 40, "a" * 200, "\t" * 90, "가각" * 50])


@pytest.fixture(scope="module")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def chat(*said: tuple[str, str]) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in said]}


@given(text=TEXTS)
def test_least_tokens_are_never_more_than_there_are(tokenizer: Tokenizer, text: str) -> None:
    """Whatever the text; so nothing that fits is refused."""
    assert tokenizer.least_tokens(text) <= len(tokenizer.encode(text))


def test_long_text_has_the_ids_of_its_parts(tokenizer: Tokenizer) -> None:
    """However it is encoded, in one thread or beside others."""
    line = " The quick brown fox, 12,345 日本 jumps.\n"
    assert tokenizer.encode(line * 400) == tokenizer.encode(line) * 400
    assert tokenizer.encode_raw(line * 400) == tokenizer.encode_raw(line) * 400


def test_prompt_is_refused_unread_when_it_cannot_fit(tokenizer: Tokenizer) -> None:
    """Its size is told as far as it is known."""
    with pytest.raises(ContextTooLong, match="the prompt has at least 12963;"):
        PromptReader(tokenizer).read(chat(("user", HUGE)), b"", READY)


def test_prompt_is_refused_unread_when_it_has_more_messages_than_tokens_fit(
    tokenizer: Tokenizer,
) -> None:
    """Each that says something is a token at least."""
    body = chat(*[("user", "a")] * CONTEXT)
    with pytest.raises(ContextTooLong, match="the prompt has at least 8192;"):
        PromptReader(tokenizer).read(body, b"", READY)


def test_prompt_is_read_when_its_template_may_leave_out_what_is_long(tokenizer: Tokenizer) -> None:
    """Some drop what an assistant thought; what is not known to be shown is not counted."""
    body = chat(("user", "hi"), ("assistant", HUGE[:700_000]), ("user", "go on"))
    _, prompt = PromptReader(tokenizer).read(body, b"", READY)
    assert len(prompt.token_ids) > CONTEXT
