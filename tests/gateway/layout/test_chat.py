"""What the chat manager foretells of a conversation, against what the real engine found."""

import asyncio
import random
import shutil
import warnings
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gateway.backends.base import Delta, Final, Finish, Work
from gateway.backends.local import LocalBackend
from gateway.layout import ChainBroken, ChatManager
from prefix_layer import EngineClient, EngineConfig

pytestmark = pytest.mark.asyncio(loop_scope="module")

START_S = 120.0
WORDS = ["th", "ing", "ought", "cat", "s", "dog", "e", "un", "der", "stand", "so", "able", "re"]
REASONING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split(' so')[-1] | trim if m.role == 'assistant' and not loop.last "
    "else m.content }}<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\n' }}"
)


class Talker:
    """An engine with a chat template, and random conversations that are held with it."""

    def __init__(self, folder: Path) -> None:
        self.client = EngineClient(EngineConfig(folder, kv_tokens=65_536))
        self.backend = LocalBackend("m", folder, self.client, ready_timeout_s=START_S)
        self.tokenizer = tokenizer = self.backend.tokenizer
        self.bias = {
            str(token_id): 100.0 for word in WORDS for token_id in tokenizer.encode(f" {word}")
        } | {str(stop): 100.0 for stop in tokenizer.stop_ids}

    async def ask(
        self, chat: ChatManager, salt: bytes, **fields: Any
    ) -> tuple[dict[str, Any], int]:
        """Send a conversation; return the completion as an API gives it, and its cached tokens."""
        body = {"max_tokens": 5, "logit_bias": self.bias, **chat.body, **fields}
        text, reason, cached = "", "", -1
        async with aclosing(self.backend.stream(Work("r", "m", body, salt))) as events:
            async for event in events:
                match event:
                    case Delta():
                        text += event.text
                    case Finish():
                        reason = event.reason
                    case Final(usage):
                        cached = usage.cached_tokens
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": reason}
        return {
            "choices": [choice],
            "usage": {"completion_tokens": usage.completion_tokens},
        }, cached

    async def talk(self, seed: int) -> list[tuple[int, int]]:
        """Hold one conversation; return what was foretold and found, turn by turn."""
        chance = random.Random(seed)
        chat = ChatManager(self.tokenizer, system=say(chance, 12) if seed % 3 else "")
        salt, pairs = f"talk {seed}".encode(), []
        for turn in range(chance.randint(2, 4)):
            chat.say(say(chance, chance.randint(1, 20)))
            if turn and chance.random() < 0.25:
                change(chat, chance)
            foretold = chat.estimate()
            answer, cached = await self.ask(chat, salt, seed=seed * 100 + turn)
            pairs.append((foretold.hit_tokens, cached))
            chat.take_answer(answer)
        return pairs


def say(chance: random.Random, num_words: int) -> str:
    odd = ["你好", "café", "🌙", "<|im_end|>", "\n", "7"]
    return " ".join(chance.choices([*WORDS, *odd], k=num_words))


def change(chat: ChatManager, chance: random.Random) -> None:
    """Break the chain in one of the ways there are."""
    with warnings.catch_warnings(action="ignore", category=ChainBroken):
        match chance.randrange(3):
            case 0:
                chat.trim(keep_last=1)
            case 1:
                chat.summarise(say(chance, 6), keep_last=1)
            case 2:
                chat.replace(0, {**chat.messages[0], "content": say(chance, 5)})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talker(tiny_chat: Path) -> AsyncIterator[Talker]:
    talker = Talker(tiny_chat)
    await talker.client.start()
    yield talker
    await talker.backend.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reasoner(
    tiny_chat: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Talker]:
    """The same model under a template that drops what an earlier answer says before " so"."""
    folder = tmp_path_factory.mktemp("reasoner")
    shutil.copytree(tiny_chat, folder, dirs_exist_ok=True)
    (folder / "chat_template.jinja").write_text(REASONING)
    talker = Talker(folder)
    await talker.client.start()
    yield talker
    await talker.backend.close()


async def test_hits_are_foretold_to_the_token_when_dialogues_are_random(talker: Talker) -> None:
    """Fifty conversations, some rewritten on the way: the engine finds what was foretold."""
    talks = await asyncio.gather(*(talker.talk(seed) for seed in range(50)))
    assert [pairs for pairs in talks if any(a != b for a, b in pairs)] == []
    assert sum(hit for pairs in talks for hit, _ in pairs) > 50 * 40


async def test_hits_are_foretold_when_a_template_drops_earlier_reasoning(reasoner: Talker) -> None:
    """Where an earlier answer is cut, the chain ends before it, and that is foretold too."""
    talks = await asyncio.gather(*(reasoner.talk(seed) for seed in range(100, 150)))
    assert [pairs for pairs in talks if any(a != b for a, b in pairs)] == []
    assert sum(hit for pairs in talks for hit, _ in pairs) > 50 * 20


async def test_rewriting_is_priced_before_it_is_done(talker: Talker) -> None:
    """What a trim or a summary costs is what the next turn then computes more."""
    chat, chance = ChatManager(talker.tokenizer, system="Be kind."), random.Random(5)
    for turn in range(4):
        chat.say(say(chance, 30))
        answer, _ = await talker.ask(chat, b"priced", seed=turn)
        chat.take_answer(answer)
    chat.say("And now?")
    cost = chat.cost_of(chat.trimmed(keep_last=3))
    assert cost.lost_tokens > 60
    assert cost.saved_tokens > 0
    assert chat.cost_of(chat.messages).lost_tokens == 0
    with pytest.warns(ChainBroken, match=f"{cost.lost_tokens} cached tokens are given up"):
        assert chat.trim(keep_last=3) == cost
    assert chat.messages[1]["role"] == "user"
    _, cached = await talker.ask(chat, b"priced", seed=9)
    assert cached == cost.after.hit_tokens


async def test_unknown_tokens_are_counted_when_only_text_is_known(talker: Talker) -> None:
    """Without counts the answer is tokenised; a cached answer leaves nothing behind."""
    chat = ChatManager(talker.tokenizer)
    chat.say("Hello")
    first = chat.estimate()
    assert (first.hit_tokens, first.share) == (0, 0.0)
    chat.take_answer("Hello there, friend.")
    chat.say("And?")
    assert chat.estimate().hit_tokens > first.prompt_tokens
    cached = ChatManager(talker.tokenizer)
    cached.say("Hello")
    cached.take_answer("Hello there, friend.", from_cache=True)
    cached.say("And?")
    assert cached.estimate().hit_tokens == 0


async def test_whole_blocks_are_counted_when_the_engine_reuses_no_less(talker: Talker) -> None:
    """An engine of blocks finds the same prefix, rounded down."""
    chats = [ChatManager(talker.tokenizer, block_size=size) for size in (1, 7)]
    for chat in chats:
        chat.say("Tell me a long story about a cat and a dog that understand each other.")
        chat.take_answer("No.")
        chat.say("Why?")
    exact, rounded = (chat.estimate().hit_tokens for chat in chats)
    assert rounded == exact - exact % 7 < exact


async def test_tool_turns_are_canonical_when_they_are_appended(talker: Talker) -> None:
    """Calls go on as the template writes them, results in one spelling."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "find")]
    chat = ChatManager(talker.tokenizer, tools=tools)
    chat.say("Find it.")
    sent = chat.estimate().prompt_tokens
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    chat.take_answer({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    chat.give_result("c1", '{"b": 1, "a": 2}')
    assert chat.messages[-1]["content"] == '{"a":2,"b":1}'
    assert [tool["function"]["name"] for tool in chat.body["tools"]] == ["find", "look"]
    assert chat.estimate().hit_tokens > sent + 10


async def test_conversation_stays_when_nothing_would_be_left(talker: Talker) -> None:
    """A trim that leaves no question, and an answer that is none, are refused."""
    chat = ChatManager(talker.tokenizer, system="Be kind.")
    chat.say("Hello")
    with pytest.raises(ValueError, match="keep_last"):
        chat.trim(keep_last=0)
    with pytest.raises(ValueError, match="answer"):
        chat.take_answer({"error": {"message": "overloaded"}})
    assert len(chat.messages) == 2


async def test_conversation_stays_when_its_body_is_changed(talker: Talker) -> None:
    """A body and turns that were handed out are the caller's own."""
    chat = ChatManager(talker.tokenizer, system="Be kind.")
    chat.say("Hello")
    chat.body["messages"][0]["content"] += " It is 10:02."
    chat.messages[1]["content"] = "Bye"
    assert [turn["content"] for turn in chat.messages] == ["Be kind.", "Hello"]


async def test_nonsense_is_refused_when_it_is_given(talker: Talker) -> None:
    """Not later, when a prompt is made of it."""
    for size in (0, -1, 2.5, "a", True):
        with pytest.raises(ValueError, match="block_size must be a whole number from 1 on"):
            ChatManager(talker.tokenizer, block_size=size)  # type: ignore[arg-type]
    chat = ChatManager(talker.tokenizer)
    with pytest.raises(TypeError, match="text must be text, not int"):
        chat.say(5)  # type: ignore[arg-type]
    chat.say("Hello")
    with pytest.raises(TypeError, match="summary must be text, not NoneType"):
        chat.summarise(None, 1)  # type: ignore[arg-type]
    message = {"role": "assistant", "content": "Hi"}
    with pytest.raises(ValueError, match="completion_tokens"):
        chat.take_answer({"choices": [{"message": message}], "usage": {"completion_tokens": -1}})
    assert len(chat.messages) == 1
