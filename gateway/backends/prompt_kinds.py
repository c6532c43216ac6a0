"""Kinds of traffic, told by the shape of a request: what of its prompt a cache should find."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Kind = Literal["single-turn", "multi-turn", "agent-loop"]
Message = Mapping[str, Any]


class PromptKind(msgspec.Struct, frozen=True):
    """The prompts of one kind of late.

    Shares are of their ``prompt_tokens``: ``hit_share`` is what an unbounded cache finds,
    ``due_share`` what earlier turns have said already; 0 where there are none.
    """

    kind: Kind
    requests: int
    prompt_tokens: int
    hit_share: float
    due_share: float


class KindTally:
    """Counts prompts by kind."""

    def __init__(self) -> None:
        self._seen: dict[Kind, list[tuple[int, int, float]]] = {}

    def add(self, messages: Sequence[Message], tools: object, tokens: int, cached: int) -> None:
        """Count one prompt."""
        due = tokens * _said_before(messages)
        self._seen.setdefault(kind_of(messages, tools), []).append((tokens, cached, due))

    def kinds(self) -> list[PromptKind]:
        """Return every kind that was seen, the one with the most tokens first."""
        found = []
        for kind, rows in self._seen.items():
            tokens, cached, due = (sum(column) for column in zip(*rows, strict=True))
            most = max(tokens, 1)
            found.append(PromptKind(kind, len(rows), int(tokens), cached / most, due / most))
        return sorted(found, key=lambda kind: -kind.prompt_tokens)


def kind_of(messages: Sequence[Message], tools: object) -> Kind:
    """Name the kind; the names are those of `strata analyze scenarios`."""
    roles = {message.get("role") for message in messages}
    if tools or "tool" in roles:
        return "agent-loop"
    return "multi-turn" if "assistant" in roles else "single-turn"


def _said_before(messages: Sequence[Message]) -> float:
    """Return the share (0..1) of a prompt that the turn before it sent as well."""
    lengths = [len(str(message.get("content") or "")) for message in messages]
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    return sum(lengths[: answers[-1]]) / max(sum(lengths), 1) if answers else 0.0
