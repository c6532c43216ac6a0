"""What a chat of 70 messages costs in a look-up, beside a request of its last message alone.

usage: python -m tests.bench.semantic.bench_long_chats [--chats N] [--messages N]

Whole look-ups of the cache with the bundled models and stores in memory, at the thresholds of a
budget of 1%. Each chat is of its own: help on goods of a shop, with questions on the side, no line
twice. A quarter of them is each of:

- ``refers, same``: the stored chat, some small talk more, a last message that refers back,
- ``refers, other``: the same with another detail told,
- ``alone, same``: a last message that stands alone, stored in other words behind another chat,
- ``alone, new``: one that nobody asked yet.

``new`` chats come with messages never read before; ``going on`` are chats whose messages but the
last two were read in the look-up before; ``cold`` clears all that is remembered, as a start does.
The one message is asked of the same cache, stored alone. Prints p50 and p95 in milliseconds, of
both and of what the chat costs beyond it.
"""

import argparse
import asyncio
import functools
import gc
import os
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.bundled import default_models_dir, prepare
from semantic_layer import (
    CacheControl,
    Hit,
    Miss,
    Scorer,
    SemanticCache,
    ThreadedEmbedder,
    ThreadedVerifier,
    load_encoder,
    load_verifier,
)
from tests.bench.semantic.bench_conversation import cache_of, query
from tests.bench.semantic.chats import Message

ANY = CacheControl()
KINDS = ("alone, same", "alone, new", "refers, same", "refers, other")
GOODS = (
    "kettle",
    "blender",
    "toaster",
    "lamp",
    "heater",
    "fan",
    "drill",
    "mower",
    "printer",
    "tent",
)
MAKERS = ("Nordal", "Brava", "Kesto", "Ilmar", "Quill", "Tervo", "Vanta", "Orsa", "Halden", "Lumo")
PLACES = ("Oslo", "Porto", "Turin", "Lyon", "Bergen", "Cadiz", "Ghent", "Malmo", "Bari", "Split")
QUESTIONS = (
    ("Which rivers flow through {0}?", "Which rivers run through {0}?"),
    ("How do I get from {0} to {1} by train?", "How can I get from {0} to {1} by train?"),
    ("How many people live in {0} and {1}?", "How many people live in {0} and in {1}?"),
)
SIDES = (
    ("Do you sell {goods}s of {maker} in {place}?", "Yes, the shop in {place} has {n} of them."),
    ("What does a {maker} {goods} weigh?", "The {maker} {goods} weighs {n} kg with its box."),
    ("How long is the warranty of {maker} {goods}s?", "It is {n} months from the day you buy it."),
    ("Is the {goods} of {maker} loud?", "It makes {n} decibels, about as much as a talk."),
    ("Can I collect a {goods} in {place}?", "Yes, {place} keeps it for you for {n} days."),
    ("Who repairs {goods}s in {place}?", "Our partner in street {n} does, on weekdays."),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A stored and an asked chat."""

    kind: str
    stored: list[Message]
    asked: list[Message]


def said(texts: Sequence[str]) -> list[Message]:
    """Return a chat of texts, user and assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(texts)]


def sides(dice: random.Random, num: int, number: int) -> list[str]:
    """Return messages on other matters; ``number`` makes them those of one chat."""
    lines = []
    for i in range(num // 2):
        words = {"goods": dice.choice(GOODS), "maker": dice.choice(MAKERS)}
        words |= {"place": dice.choice(PLACES), "n": str(100 * number + i)}
        lines += [line.format(**words) for line in SIDES[i % len(SIDES)]]
    return lines


def case_of(dice: random.Random, number: int, messages: int) -> Case:
    """Make the chats of one case."""
    kind = KINDS[number % len(KINDS)]
    goods, place = dice.choice(GOODS), dice.sample(PLACES, 2)
    maker = f"{dice.choice(MAKERS)}{number}"
    told = [f"I bought the {maker} {goods} in {place[0]}.", "Thank you! Does it work well?"]
    more = sides(dice, messages - 2, number)
    if kind.startswith("refers"):
        last = "Can I still take it back to the shop without the box?"
        other = told if kind.endswith("same") else [told[0].replace(maker, f"X{number}"), told[1]]
        chats = [*told, *more, last], [*other, *more[2:], "Thanks a lot!", "You're welcome!", last]
    else:
        asked, stored = dice.choice(QUESTIONS)
        names = [f"{name}ville {number}" for name in place]
        kept = "What is the longest word of all?" if kind.endswith("new") else stored
        before = sides(dice, 10, -number - 1)
        chats = [*before, kept.format(*names)], [*more, asked.format(*names)]
    return Case(kind, *map(said, chats))


def forget() -> None:
    """Clear all that functions of the semantic layer remember."""
    for each in gc.get_objects():
        is_kept = isinstance(each, functools._lru_cache_wrapper)
        if is_kept and each.__module__.startswith("semantic_layer") and each.cache_info().maxsize:
            each.cache_clear()


async def keep(cache: SemanticCache, chat: Sequence[Message]) -> None:
    """Store an answer to a chat."""
    miss = await cache.lookup(query(chat), ANY)
    if isinstance(miss, Miss):
        await cache.store(query(chat), ANY, miss, b"A", answer_text="A")


async def spent_ms(cache: SemanticCache, chat: Sequence[Message]) -> tuple[float, bool]:
    """Return the milliseconds of one look-up, and whether it was a hit."""
    asked = query(chat)
    began = time.perf_counter()
    found = await cache.lookup(asked, ANY)
    return 1e3 * (time.perf_counter() - began), isinstance(found, Hit)


async def begin(cache: SemanticCache, state: str) -> None:
    """Forget all where a look-up is to be cold, but not how to look up."""
    if state == "cold":
        forget()
        await cache.lookup(query(said(["What is it?"])), ANY)


async def measured(
    cache: SemanticCache, cases: Sequence[Case], state: str
) -> list[tuple[str, float, float, bool]]:
    """Look each case up; give its kind, the milliseconds of the chat and of its last message."""
    rows = []
    for case in cases:
        if state == "going on":
            await cache.lookup(query(case.asked[:-2]), ANY)
        await begin(cache, state)
        long_ms, is_hit = await spent_ms(cache, case.asked)
        await begin(cache, state)
        one = [{"role": "user", "content": case.asked[-1]["content"].replace("?", " please?")}]
        short_ms, _ = await spent_ms(cache, one)
        rows.append((case.kind, long_ms, short_ms, is_hit))
    return rows


def p(values: Sequence[float]) -> str:
    """Write p50 and p95."""
    ordered = sorted(values)
    return f"{statistics.median(ordered):6.1f} {ordered[int(0.95 * len(ordered))]:6.1f}"


async def main(options: argparse.Namespace) -> None:
    """Measure all states."""
    base = prepare(default_models_dir(os.environ)).embedder_path
    embedder = ThreadedEmbedder(load_encoder(base))
    verifier = ThreadedVerifier(load_verifier("bundled", base))
    scorer = await Scorer.matching(embedder)
    print(f"{'':24} chat p50   p95  alone p50   p95  beyond p50   p95   hits")
    for state in ("new", "going on", "cold"):
        cache = cache_of(embedder, scorer, verifier)
        dice = random.Random(state)
        cases = [case_of(dice, i, options.messages) for i in range(options.chats)]
        for case in cases:
            await keep(cache, case.stored)
            await keep(cache, case.stored[-1:])
        rows: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
        for kind, long_ms, short_ms, is_hit in await measured(cache, cases, state):
            for name in (kind, "all"):
                rows[name].append((long_ms, short_ms, is_hit))
        for kind, found in sorted(rows.items()):
            columns = [[a for a, _, _ in found], [b for _, b, _ in found]]
            columns.append([a - b for a, b, _ in found])
            hits = sum(hit for _, _, hit in found)
            print(f"{state:9} {kind:14}", *map(p, columns), f"  {hits}/{len(found)}")
    await verifier.close()
    await embedder.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=80)
    parser.add_argument("--messages", type=int, default=70, help="before the last one; even")
    asyncio.run(main(parser.parse_args()))
