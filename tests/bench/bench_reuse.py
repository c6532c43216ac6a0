"""What share of the shareable prompt tokens is reused: ``python -m tests.bench.bench_reuse``.

Through the local backend, as requests go: chat template, tokenizer, spliced ids, engine. A token is
shareable when an earlier prompt, or its answer as the model generated it, begins with the same text
up to there. No timing; the figures do not depend on how busy the machine is.
"""

import argparse
import asyncio
import json
import os
from dataclasses import dataclass, field

from gateway.backends.base import Delta, Final, Work
from gateway.backends.local import LocalBackend
from gateway.bundled import prepare
from gateway.bundled.location import default_models_dir
from prefix_layer import EngineClient, EngineConfig

RULES = "You are a careful assistant of a small library. Answer in one sentence, never guess. " * 6
ASKS = (
    "Name a book about the sea.",
    "Why that one?",
    "推荐一本中文书。",
    "And for a child?",
    "Bye?",
)
READY_S = 120.0


@dataclass(slots=True)
class Count:
    """Texts seen so far, and tokens over all requests."""

    seen: list[list[int]] = field(default_factory=list)
    shareable: int = 0
    reused: int = 0
    prompt: int = 0

    @property
    def share(self) -> float:
        """Reused tokens among the shareable ones."""
        return self.reused / max(self.shareable, 1)


class Library:
    """A backend over the bundled model, and the counts of what it is asked."""

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend
        self.count = Count()

    async def ask(self, turns: list[dict[str, str]], seed: int) -> str:
        """Ask for an answer; count what could be and what was reused."""
        body = {"messages": turns, "max_tokens": 40, "temperature": 1.0, "seed": seed}
        prompt = await self._backend.read(body, b"bench")
        text, usage = "", None
        async for event in self._backend.stream(Work(f"r{seed}", "m", body, b"bench")):
            if isinstance(event, Delta):
                text += event.text
            if isinstance(event, Final):
                usage = event.usage
        assert usage is not None
        ids, count = prompt.token_ids, self.count
        longest = max((_common(ids, other) for other in count.seen), default=0)
        count.shareable += min(longest, len(ids) - 1)
        count.reused += usage.cached_tokens
        count.prompt += len(ids)
        answered = [*turns, {"role": "assistant", "content": text}, {"role": "user", "content": ""}]
        whole = await self._backend.read({"messages": answered}, b"bench")
        count.seen.append(whole.token_ids[: len(ids) + usage.completion_tokens])
        return text


def _common(a: list[int], b: list[int]) -> int:
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


async def multi_turn(library: Library) -> None:
    """Let conversations go on, one turn of each after the other."""
    talks: list[list[dict[str, str]]] = [[{"role": "system", "content": RULES}] for _ in range(4)]
    for turn, question in enumerate(ASKS):
        for at, talk in enumerate(talks):
            talk.append({"role": "user", "content": question})
            answer = await library.ask(talk, seed=10 * turn + at)
            talk.append({"role": "assistant", "content": answer})


async def shared_prompt(library: Library) -> None:
    """Ask many questions behind one system prompt."""
    for at in range(16):
        question = {"role": "user", "content": f"Question {at}: what is on shelf {at * 7}?"}
        await library.ask([{"role": "system", "content": RULES}, question], seed=at)


WORKLOADS = {"multi-turn": multi_turn, "shared prompt": shared_prompt}


async def measure() -> dict[str, Count]:
    """Run each workload on an empty cache."""
    models = prepare(default_models_dir(os.environ))
    client = EngineClient(EngineConfig(models.chat_path, kv_tokens=16_384))
    backend = LocalBackend("m", models.chat_path, client)
    await client.start()
    await client.wait_ready(READY_S)
    counts: dict[str, Count] = {}
    try:
        for name, run in WORKLOADS.items():
            await client.reset()
            library = Library(backend)
            await run(library)
            counts[name] = library.count
    finally:
        await backend.close()
    return counts


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = asyncio.run(measure())
    if options.json:
        rows = {
            name: {"prompt": c.prompt, "shareable": c.shareable, "reused": c.reused}
            for name, c in counts.items()
        }
        print(json.dumps(rows))
        return
    for name, c in counts.items():
        print(f"{name}: {c.reused} of {c.shareable} shareable tokens reused ({c.share:.2%})")


if __name__ == "__main__":
    main()
