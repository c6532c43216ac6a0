"""What the model generated stands in the next turn's prompt with the ids it had."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import Work
from gateway.backends.generated_ids import GeneratedIds
from gateway.backends.local import LocalBackend
from gateway.backends.tokenizer import Tokenizer
from prefix_layer import Tokens
from tests.fakes.engine import FakeClient

EOS = 2
HI = {"role": "user", "content": "Hi"}
MORE = {"role": "user", "content": "And then?"}
ANSWERS = [
    "Hello there, friend.",
    "你好，世界！🌙 café",
    " leading",
    "ends in space ",
    "a\n\n```py\nx=1\n```",
]
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{{ m.content.split('</think>')[-1] | trim if m.role == 'assistant' else m.content }}"
    "<|im_end|>\n"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)


@pytest.fixture(scope="module")
def tokenizer(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def odd_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Tokenise a text as no tokenizer would: a character at a time."""
    ids = [token_id for char in text for token_id in tokenizer.encode(char)]
    assert ids != tokenizer.encode(text)
    return ids


class Chat:
    """A backend over a client that plays one answer, and the prompts it was given."""

    def __init__(self, folder: Path) -> None:
        self.client = FakeClient(folder, [], 8192)
        self.backend = LocalBackend("m", folder, self.client)  # type: ignore[arg-type]

    async def ask(
        self, messages: list[dict[str, Any]], ids: list[int], salt: bytes = b"t", **body: Any
    ) -> list[int]:
        finish = Tokens("r", [EOS], None, "stop")
        self.client.script = [*(Tokens("r", [token_id]) for token_id in ids), finish]
        work = Work("req", "m", {"messages": messages, **body}, salt)
        _ = [event async for event in self.backend.stream(work)]
        return self.client.commands[-1].prompt


@pytest.mark.parametrize("text", ANSWERS)
async def test_generated_ids_are_in_the_next_prompt_when_the_text_comes_back(
    bundled_chat_model: Path, tokenizer: Tokenizer, text: str
) -> None:
    """Over several turns the prompt begins with exactly what the engine has KV of."""
    chat, ids = Chat(bundled_chat_model), odd_ids(tokenizer, text)
    first = await chat.ask([HI], ids)
    history = [HI, {"role": "assistant", "content": text}, MORE]
    second = await chat.ask(history, ids)
    third = await chat.ask([*history, {"role": "assistant", "content": text}, HI], ids)
    assert second[: len(first) + len(ids)] == [*first, *ids]
    assert third[: len(second) + len(ids)] == [*second, *ids]
    plain = tokenizer.encode_chat(history)
    assert tokenizer.show(second) == tokenizer.show(plain)
    assert second[len(first) + len(ids) :] == plain[-len(second) + len(first) + len(ids) :]


@pytest.mark.parametrize(
    "history",
    [
        [HI, {"role": "assistant", "content": "Hello there, friend"}, MORE],
        [HI, {"role": "assistant", "content": "Hello there, friend. Bye."}, MORE],
        [HI, {"role": "assistant", "content": "hello there, friend."}, MORE],
        [HI, {"role": "user", "content": "Hello there, friend."}, MORE],
        [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": ANSWERS[0]}, MORE],
        [MORE, {"role": "assistant", "content": ANSWERS[0]}, MORE],
    ],
)
async def test_text_is_tokenised_when_it_is_not_what_was_generated_there(
    bundled_chat_model: Path, tokenizer: Tokenizer, history: list[dict[str, Any]]
) -> None:
    """An edited answer, another speaker or another history gets the tokenizer's own ids."""
    chat = Chat(bundled_chat_model)
    await chat.ask([HI], odd_ids(tokenizer, ANSWERS[0]))
    assert await chat.ask(history, []) == tokenizer.encode_chat(history)


async def test_other_tenant_gets_plain_ids_when_the_conversation_is_the_same(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """How an answer was tokenised is known to its tenant alone."""
    chat = Chat(bundled_chat_model)
    await chat.ask([HI], odd_ids(tokenizer, ANSWERS[0]), b"a")
    history = [HI, {"role": "assistant", "content": ANSWERS[0]}, MORE]
    assert await chat.ask(history, [], b"b") == tokenizer.encode_chat(history)
    assert await chat.ask(history, [], b"a") != tokenizer.encode_chat(history)


async def test_ids_end_with_the_text_when_a_stop_string_cut_it(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """Of an answer that a stop string ended, only what went out stands in the next prompt."""
    chat, ids = Chat(bundled_chat_model), odd_ids(tokenizer, "one two STOP three")
    first = await chat.ask([HI], ids, stop=["STOP"])
    history = [HI, {"role": "assistant", "content": "one two "}, MORE]
    second = await chat.ask(history, [])
    assert second[: len(first) + len("one two ")] == [*first, *ids[: len("one two ")]]
    assert tokenizer.show(second) == tokenizer.show(tokenizer.encode_chat(history))


async def test_ids_stay_out_when_special_tokens_are_among_them(
    bundled_chat_model: Path, tokenizer: Tokenizer
) -> None:
    """A special token that the model made up never enters a prompt as what a client sent."""
    chat = Chat(bundled_chat_model)
    ids = odd_ids(tokenizer, "ab")
    await chat.ask([HI], [ids[0], 1, ids[1]])
    history = [HI, {"role": "assistant", "content": "ab"}, MORE]
    assert await chat.ask(history, []) == tokenizer.encode_chat(history)


async def test_chain_holds_up_to_the_answer_when_a_template_drops_reasoning(
    bundled_chat_model: Path, tmp_path: Path
) -> None:
    """Without the reasoning the answer stands elsewhere, so it is tokenised; before it all fits."""
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"):
        shutil.copy(bundled_chat_model / name, tmp_path / name)
    (tmp_path / "chat_template.jinja").write_text(THINKING)
    tokenizer, chat = Tokenizer(tmp_path), Chat(tmp_path)
    text = "<think>hm, well</think>\n\nYes."
    first = await chat.ask([HI], odd_ids(tokenizer, text))
    history = [HI, {"role": "assistant", "content": text}, MORE]
    second = await chat.ask(history, odd_ids(tokenizer, "No."))
    assert second == tokenizer.encode_chat(history)
    assert second[: len(first)] == first
    assert "hm, well" not in tokenizer.show(second)
    third = await chat.ask([*history, {"role": "assistant", "content": "No."}, HI], [])
    assert third[: len(second) + 3] == [*second, *odd_ids(tokenizer, "No.")]


def test_oldest_answers_are_dropped_when_memory_is_full(tokenizer: Tokenizer) -> None:
    """Memory is bounded in tokens; the last used answers stay."""
    kept = GeneratedIds(tokenizer, max_tokens=400)
    prompts = [tokenizer.render([{"role": "user", "content": f"q{i}"}]) for i in range(40)]
    ids = odd_ids(tokenizer, "yes")
    for prompt in prompts:
        kept.remember(b"t", prompt, tokenizer.encode_rendered(prompt), ids)
    history = [prompt + "yes" + tokenizer.render([HI])[:31] for prompt in prompts]
    known = [ids == kept.encode(b"t", h)[-len(ids) - 1 : -1] for h in history]
    spliced = [kept.encode(b"t", h) != tokenizer.encode_rendered(h) for h in history]
    assert not any(spliced[:20])
    assert spliced[-1]
    assert sum(spliced) <= 12
    assert len(known) == 40
