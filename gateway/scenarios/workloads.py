"""Who asks what, in which order. Knows no backend: requests out, answers in."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass

from gateway.scenarios.words import Words

Messages = list[dict[str, str]]
Load = Generator[list[Messages], list[str], None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """``num_requests`` of a scenario, and ``num_words`` of its longest part."""

    num_requests: int = 8
    num_words: int = 150


def single_turn(words: Words, sizes: Sizes) -> Load:
    """Ask unrelated questions under one short system prompt."""
    system = words.text(sizes.num_words // 8)
    for _ in range(sizes.num_requests):
        yield [_chat(system, words.text(sizes.num_words))]


def rag_shared(words: Words, sizes: Sizes) -> Load:
    """Put the same retrieved passages, in the same order, before each question."""
    system, passages = words.text(sizes.num_words // 8), _passages(words, sizes)
    for _ in range(sizes.num_requests):
        yield [_chat(system, "\n\n".join([*passages, words.text(10)]))]


def rag_shuffled(words: Words, sizes: Sizes) -> Load:
    """Put the same passages before each question, ranked anew each time."""
    system, passages = words.text(sizes.num_words // 8), _passages(words, sizes)
    for _ in range(sizes.num_requests):
        words.rng.shuffle(passages)
        yield [_chat(system, "\n\n".join([*passages, words.text(10)]))]


def multi_turn(words: Words, sizes: Sizes) -> Load:
    """Hold two conversations in turn, each with all that was said before."""
    turn = sizes.num_words // 3
    chats = [_chat(words.text(turn), words.text(turn)) for _ in range(2)]
    for i in range(sizes.num_requests):
        chat = chats[i % 2]
        (answer,) = yield [list(chat)]
        chat += [_says("assistant", answer), _says("user", words.text(turn))]


def template_batch(words: Words, sizes: Sizes) -> Load:
    """Fill one long template with different items, four requests at once."""
    template = words.text(sizes.num_words)
    chats = [_chat(template, words.text(15)) for _ in range(sizes.num_requests)]
    for batch in _batches(chats, 4):  # noqa: UP028 - a list takes no answers
        yield batch


def agent_loop(words: Words, sizes: Sizes) -> Load:
    """Give tool results back to a model until the task is done; the context only grows."""
    tools = "\n".join(f"tool_{i}: {words.text(sizes.num_words // 6)}" for i in range(6))
    chat = _chat(tools, words.text(20))
    for i in range(sizes.num_requests):
        (answer,) = yield [list(chat)]
        result = f"Result of tool_{i % 6}: {words.text(sizes.num_words // 5)}"
        chat += [_says("assistant", answer), _says("user", result)]


SCENARIOS: Mapping[str, Callable[[Words, Sizes], Load]] = {
    "single-turn": single_turn,
    "rag-shared": rag_shared,
    "rag-shuffled": rag_shuffled,
    "multi-turn": multi_turn,
    "template-batch": template_batch,
    "agent-loop": agent_loop,
}


def _passages(words: Words, sizes: Sizes) -> list[str]:
    return [words.text(sizes.num_words // 4) for _ in range(4)]


def _chat(system: str, user: str) -> Messages:
    return [_says("system", system), _says("user", user)]


def _says(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _batches(chats: list[Messages], size: int) -> list[list[Messages]]:
    return [chats[i : i + size] for i in range(0, len(chats), size)]
