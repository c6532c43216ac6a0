"""Pairs of chats with the same or a different right answer, expanded from compact groups.

A group is one JSON line: ``base`` (texts, user and assistant in turn, the user last), ``same`` and
``traps``: variants of it. A variant names a whole ``chat`` ("=" for the base's last message), or
changes the base: ``at`` replaces messages by place, ``sub`` replaces words in every message.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.doubts import doubts_of
from semantic_layer.chats.remains import Remains, lines_of
from semantic_layer.chats.sides import without_sides
from tests.bench.pair_sets import LabelledPair

AUTHORED = Path(__file__).parent / "authored"
Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class ChatPair:
    """Two chats, whether one answer is right for both, and of which kind the pair is."""

    pair_id: str
    kind: str
    same: bool
    one: tuple[Message, ...]
    other: tuple[Message, ...]


def authored(names: str = "chats-*.jsonl") -> list[ChatPair]:
    """Return the pairs written for Strata; odd groups are for fitting, even ones for checking."""
    lines = (line for path in sorted(AUTHORED.glob(names)) for line in path.open(encoding="utf-8"))
    return [pair for line in lines if line.strip() for pair in pairs_of(json.loads(line))]


def is_fitting(pair: ChatPair) -> bool:
    """Say whether a pair's group is one of those that are fitted on."""
    digits = "".join(char for char in pair.pair_id.split("/")[0] if char.isdigit())
    return int(digits) % 2 == 1


def pairs_of(group: dict[str, Any]) -> Iterator[ChatPair]:
    """Pair a group's base with each of its variants."""
    base = group["base"]
    for side, same in (("same", True), ("traps", False)):
        for i, variant in enumerate(group[side]):
            yield ChatPair(
                f"{group['id']}/{side}{i}",
                f"{side}:{variant['k']}",
                same,
                _messages(base),
                _messages(_varied(base, variant)),
            )


def published(path: Path) -> list[ChatPair]:
    """Read conversation pairs of the fow-cache set (CC BY 4.0, Mabon ap Gwyn); measured only."""
    rows = (json.loads(line) for line in path.open(encoding="utf-8"))
    return [
        ChatPair(row["id"], row["subtype"], row["same_answer"], tuple(row["a"]), tuple(row["b"]))
        for row in rows
    ]


def _varied(base: list[str], variant: dict[str, Any]) -> list[str]:
    if "chat" in variant:
        chat: list[str] = variant["chat"]
        return [*chat[:-1], base[-1] if chat[-1] == "=" else chat[-1]]
    changed = [variant.get("at", {}).get(str(i), text) for i, text in enumerate(base)]
    for old, new in variant.get("sub", {}).items():
        assert any(old in text for text in changed), f"{old!r} is not in the base"
        changed = [text.replace(old, new) for text in changed]
    return changed


def _messages(texts: list[str]) -> tuple[Message, ...]:
    return tuple(
        {"role": "assistant" if i % 2 else "user", "content": text} for i, text in enumerate(texts)
    )


def chat_of(messages: tuple[Message, ...]) -> Chat:
    """Return the chat as similarity is judged on it."""
    return Chat(messages[-1]["content"], tuple((m["role"], m["content"]) for m in messages[:-1]))


def requests_of(pairs: list[ChatPair]) -> Iterator[LabelledPair]:
    """Yield what a verifier would be asked between chats whose last messages need their histories.

    Of a trap that differs both in what the user and in what the assistant said nobody knows which
    of the two makes it one, unless its context is another altogether.
    """
    for pair in pairs:
        asked, stored = chat_of(pair.one), chat_of(pair.other)
        if asked.alone or stored.alone:
            continue
        one, other = without_sides(asked, stored)
        left = Remains(lambda _: False).left(lines_of(one), lines_of(other))
        doubts = [d for d in doubts_of(asked, stored, *left) if d.one != d.other]
        if pair.same or len(doubts) == 1 or pair.kind == "traps:context":
            yield from (LabelledPair(d.one, d.other, same=pair.same) for d in doubts)
