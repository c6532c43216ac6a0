"""A model as the rewriter: what it is asked, what of its answer is used, and its failures."""

import pytest

from gateway.backends.routing import Backends
from gateway.errors import BackendUnavailable
from gateway.rewriter import INSTRUCTIONS, ModelRewriter
from semantic_layer import Chat, RewriterFailed
from tests.fakes.backends import FakeBackend, whole

CHAT = Chat("how much is it?", (("user", "I want the red one."), ("assistant", "Sure.")))


async def test_model_is_asked_behind_fixed_instructions_at_temperature_0() -> None:
    """The same start each time, then the conversation and its last message."""
    backend = FakeBackend(whole(' "How much is the red one?"\n'))
    rewriter = ModelRewriter(Backends([backend]), "m")
    assert await rewriter.rewrite(CHAT) == "How much is the red one?"
    (work,) = backend.calls
    system, question = work.body["messages"]
    assert system["content"] == INSTRUCTIONS
    assert "user: I want the red one.\nassistant: Sure." in question["content"]
    assert question["content"].endswith("how much is it?")
    assert work.body["temperature"] == 0


async def test_start_of_a_long_conversation_is_left_out() -> None:
    """A chat longer than the rewriter reads keeps its end."""
    backend = FakeBackend(whole("How much is the red one?"))
    long = Chat(CHAT.text, (("user", "x" * 50_000), *CHAT.history))
    await ModelRewriter(Backends([backend]), "m").rewrite(long)
    question = backend.calls[0].body["messages"][1]["content"]
    assert len(question) < 10_000
    assert "red one" in question


@pytest.mark.parametrize(
    "backend",
    [
        FakeBackend(whole("How much is the", "length")),
        FakeBackend(whole("")),
        FakeBackend([], error=BackendUnavailable("down")),
        FakeBackend(whole("text"), model_id="another"),
    ],
)
async def test_rewriting_fails_when_there_is_no_whole_answer(backend: FakeBackend) -> None:
    """Cut off, down, or no such model: the cache goes on without; no text is none to trust."""
    rewriter = ModelRewriter(Backends([backend]), "m")
    try:
        text = await rewriter.rewrite(CHAT)
    except RewriterFailed:
        text = ""
    assert text == ""
