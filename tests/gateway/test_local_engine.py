"""The local backend over the real engine and the bundled model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio

from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob, Usage, Work
from gateway.backends.local import LocalBackend
from gateway.errors import BackendError, ContextTooLong
from prefix_layer import EngineClient, EngineConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")

START_S = 120.0
CONTEXT = 512  # of the pool, so that long prompts stay quick
COPY = "Copy this line exactly: 晚安🌙 café Ω e\u0301 你好👩\u200d🚀"


class Stack:
    """A client with its backend, and what tests ask them."""

    def __init__(self, folder: Path) -> None:
        self.client = EngineClient(EngineConfig(folder, kv_tokens=CONTEXT), backoff_s=0.01)
        self.backend = LocalBackend("m", folder, self.client, ready_timeout_s=START_S)

    async def ask(self, content: str, **body: Any) -> list[Event]:
        work = Work("req", "m", self.body(content, **body), b"")
        return [event async for event in self.backend.stream(work)]

    def body(self, content: str, **body: Any) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": content}], "temperature": 0, **body}

    async def kill_in_mid_answer(self) -> None:
        engine = psutil.Process(self.client.pid)
        work = Work("req", "m", self.body("Count to a hundred.", max_tokens=300), b"")
        async with aclosing(self.backend.stream(work)) as events:
            await anext(events)
            engine.kill()
            async for _ in events:
                pass

    @property
    def is_waiting(self) -> bool:
        """Whether something was sent to the engine and not answered."""
        connection = self.client._connection
        return connection is not None and connection.silent_s > 0

    async def num_active_blocks(self) -> int:
        return (await self.client.stats()).blocks_by_state.get("active", 0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(bundled_chat_model: Path) -> AsyncIterator[Stack]:
    stack = Stack(bundled_chat_model)
    await stack.client.start()
    await stack.client.wait_ready(START_S)
    yield stack
    await stack.backend.close()


def text_of(events: list[Event], index: int = 0) -> str:
    return "".join(e.text for e in events if isinstance(e, Delta) and e.index == index)


def usage_of(events: list[Event]) -> Usage:
    assert isinstance(events[-1], Final)
    return events[-1].usage


def entries_of(events: list[Event]) -> list[TokenLogprob]:
    return [entry for e in events if isinstance(e, Delta) for entry in e.logprobs]


async def test_capital_is_paris_when_asked_greedily(stack: Stack) -> None:
    """The model answers, and the same prompt again reuses its blocks."""
    first = await stack.ask("What is the capital of France?", max_tokens=12)
    again = await stack.ask("What is the capital of France?", max_tokens=12)
    assert text_of(first) == "The capital of France is Paris."
    assert text_of(again) == text_of(first)
    assert usage_of(again).cached_tokens >= 32
    assert Finish(0, "stop") in first


@pytest.mark.parametrize(
    "content", [COPY, "用中文说三种颜色。", "Reply with three emoji: 🌙🚀👨\u200d👩\u200d👧"]
)
@pytest.mark.parametrize("max_tokens", [7, 24])
async def test_deltas_join_to_the_logprobs_bytes_when_text_is_not_ascii(
    stack: Stack, content: str, max_tokens: int
) -> None:
    """Streamed text is the tokens' bytes as one string, also where the limit cuts a character."""
    events = await stack.ask(content, max_tokens=max_tokens, logprobs=True)
    entries = entries_of(events)
    data = b"".join(bytes(entry.bytes or []) for entry in entries)
    assert text_of(events) == data.decode(errors="replace")
    assert len(entries) == usage_of(events).completion_tokens <= max_tokens
    assert text_of(await stack.ask(content, max_tokens=max_tokens)) == text_of(events)


async def test_logprobs_agree_when_the_prefix_is_warm(stack: Stack) -> None:
    """Cold and warm prefixes give the same tokens and the same logprobs."""
    await stack.client.reset()
    asked = {"max_tokens": 6, "logprobs": True, "top_logprobs": 5}
    cold = await stack.ask("Name a colour.", **asked)
    warm = await stack.ask("Name a colour.", **asked)
    assert usage_of(cold).cached_tokens == 0
    assert usage_of(warm).cached_tokens > 0
    for before, after in zip(entries_of(cold), entries_of(warm), strict=True):
        assert before.token == after.token
        assert before.logprob == pytest.approx(after.logprob, abs=1e-3)
        assert len(before.top_logprobs) == 5
        assert all(-9999 <= top.logprob <= 0 for top in before.top_logprobs)


async def test_banned_token_is_absent_when_its_bias_is_lowest(stack: Stack) -> None:
    """A bias of -100 bans a token; every token still has its entry."""
    plain = await stack.ask("Name a colour.", max_tokens=4, logprobs=True)
    tokenizer = stack.backend.tokenizer
    banned = tokenizer.encode(entries_of(plain)[0].token)[0]
    events = await stack.ask(
        "Name a colour.",
        max_tokens=4,
        logprobs=True,
        top_logprobs=20,
        logit_bias={str(banned): -100},
    )
    assert entries_of(events)[0].token != entries_of(plain)[0].token
    assert len(entries_of(events)) == usage_of(events).completion_tokens


async def test_choices_repeat_when_the_seed_does(stack: Stack) -> None:
    """One seed gives the same set of different choices again."""
    asked = {"n": 3, "seed": 11, "temperature": 1.0, "max_tokens": 12}
    first = await stack.ask("Write one line about the sea.", **asked)
    again = await stack.ask("Write one line about the sea.", **asked)
    texts = [text_of(first, index) for index in range(3)]
    assert texts == [text_of(again, index) for index in range(3)]
    assert len(set(texts)) == 3


async def test_answer_ends_by_length_when_eight_tokens_are_left(stack: Stack) -> None:
    """A limit beyond the context is cut; the prompt never is."""
    tokenizer = stack.backend.tokenizer

    def num_prompt(words: int) -> int:
        return len(
            tokenizer.encode_chat([{"role": "user", "content": "pebble " * words + "count"}])
        )

    words = next(n for n in range(CONTEXT) if num_prompt(n) >= CONTEXT - 9)
    filler = " go" * (CONTEXT - 8 - num_prompt(words))
    events = await stack.ask("pebble " * words + "count" + filler, max_tokens=64)
    assert usage_of(events).prompt_tokens == CONTEXT - 8
    assert usage_of(events).completion_tokens <= 8
    assert [e.reason for e in events if isinstance(e, Finish)] in (["length"], ["stop"])
    if usage_of(events).completion_tokens == 8:
        assert Finish(0, "length") in events


async def test_next_request_works_when_one_was_too_long(stack: Stack) -> None:
    """A prompt of 24,000 tokens is refused with both numbers and leaves nothing behind."""
    with pytest.raises(ContextTooLong, match=rf"{CONTEXT}.*24\d\d\d"):
        await stack.ask("pebble " * 12_000 + "What is the secret word?")
    assert text_of(await stack.ask("Hi", max_tokens=3))
    assert await stack.num_active_blocks() == 0


async def test_blocks_are_free_when_the_reader_goes(stack: Stack) -> None:
    """An abandoned answer holds no block by the time the engine answers the next question."""
    work = Work("req", "m", stack.body("Count to a hundred.", max_tokens=300), b"")
    async with aclosing(stack.backend.stream(work)) as events:
        await anext(events)
        assert await stack.num_active_blocks() > 0
    assert await stack.num_active_blocks() == 0
    assert (await stack.client.stats()).num_running == 0


async def test_engine_comes_back_when_killed_in_mid_answer(stack: Stack) -> None:
    """A kill -9 fails what is in flight by name; the next request waits and is answered."""
    fingerprint = stack.backend.models()
    with pytest.raises(BackendError, match="SIGKILL") as caught:
        await stack.kill_in_mid_answer()
    assert caught.value.code == "engine_restarted"
    assert not (await stack.backend.health()).ok
    assert stack.backend.models() == fingerprint
    answer = await stack.ask("What is the capital of France?", max_tokens=12)
    assert text_of(answer) == "The capital of France is Paris."
    assert (await stack.backend.health()).ok


@pytest.mark.parametrize("body", [{}, {"n": 2, "temperature": 1.0}])
async def test_answer_comes_when_the_engine_is_killed_before_its_first_token(
    stack: Stack, body: dict[str, Any]
) -> None:
    """The next engine answers what the last one had only accepted, every choice of it."""
    engine = psutil.Process(stack.client.pid)
    engine.suspend()
    asking = asyncio.create_task(stack.ask("What is the capital of France?", max_tokens=12, **body))
    async with asyncio.timeout(60):
        while not stack.is_waiting:
            await asyncio.sleep(0.01)
    engine.kill()
    events = await asking
    assert text_of(events)
    assert len([event for event in events if isinstance(event, Finish)]) == body.get("n", 1)


async def test_one_line_says_why_when_there_are_no_weights(tmp_path: Path) -> None:
    """A folder without a model is failed at once, in the engine's own words."""
    client = EngineClient(EngineConfig(tmp_path))
    await client.start()
    with pytest.raises(Exception, match=str(tmp_path)) as caught:
        await client.wait_ready(START_S)
    assert client.state == "failed"
    assert "\n" not in str(caught.value)
    await client.close()
