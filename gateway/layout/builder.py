"""Builds requests whose stable parts come first, so that they share their prefix.

```
tools ─ system ─ worked examples ─ earlier turns ─ documents ─ question ─ facts of the moment
──────── the same in every request ────────  ──── appended only ────  ──────── new each time ──────
```
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from gateway.layout.canonical import Properties, canonical_tools
from gateway.layout.chunks import Arrangement, By, Chunk, ChunkOrder
from gateway.layout.documents import documents_text

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Built:
    """A chat request's ``messages`` and ``tools``, and the order that its chunks stand in."""

    messages: list[Message]
    tools: list[dict[str, Any]]
    arrangement: Arrangement | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The fields to put into a request, as an SDK takes them."""
        return {"messages": self.messages, **({"tools": self.tools} if self.tools else {})}


class PromptBuilder:
    """Holds what is the same in every request.

    ``examples`` are pairs of a question and its answer. ``order`` remembers the chunks of earlier
    requests; share one between builders whose prompts begin alike. ``properties`` says whether the
    arguments of tools are sorted too.
    """

    def __init__(
        self,
        system: str = "",
        *,
        tools: Sequence[dict[str, Any]] = (),
        examples: Sequence[tuple[str, str]] = (),
        order: ChunkOrder | None = None,
        properties: Properties = "kept",
    ) -> None:
        self.order = order or ChunkOrder()
        self._tools = canonical_tools(deepcopy(list(tools)), properties)
        self._stable: list[Message] = [{"role": "system", "content": system}] if system else []
        for question, answer in examples:
            self._stable += [_user(question), {"role": "assistant", "content": answer}]

    def build(
        self,
        question: str,
        *,
        chunks: Sequence[Chunk] = (),
        by: By = "reuse",
        facts: Mapping[str, str] | None = None,
        history: Sequence[Message] = (),
    ) -> Built:
        """Lay one request out, and remember the order of its chunks.

        ``chunks`` come most relevant first, ``facts`` are what changes from moment to moment, such
        as the date; ``history`` are the earlier turns as they were sent.

        What is returned is the caller's own: changing it changes no later request.

        Raises:
            ValueError: there is no such order, or two chunks have one id; names it.
            TypeError: a turn of ``history`` is no message; names its place.
        """
        for at, turn in enumerate(history):
            if not isinstance(turn, Mapping):
                raise TypeError(f"history[{at}] must be a message, not {type(turn).__name__}")
        arrangement = self.order.arrange(chunks, by)
        text = documents_text(arrangement.chunks) + question + _facts_text(facts or {})
        if chunks:
            self.order.note(arrangement)
        messages = deepcopy([*self._stable, *history, _user(text)])
        return Built(messages, deepcopy(self._tools), arrangement if chunks else None)


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _facts_text(facts: Mapping[str, str]) -> str:
    return (
        "\n".join(["\n", *(f"{name}: {value}" for name, value in facts.items())]) if facts else ""
    )
