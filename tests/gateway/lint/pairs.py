"""Logs of a dozen requests with two faults at once: every pair of those that a log can have."""

import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any

from tests.gateway.lint.logs import TOOLS, Row, chat
from tests.gateway.lint.texts import Texts

REQUESTS = 12
ORDERS = list(permutations(range(4)))[5::2]
WIDE = "Ｃｏｄｅ：ａｂｃ（ｄｅｆ）"


@dataclass
class Parts:
    """What one request is made of; faults change it."""

    system: list[str]
    tools: list[Row]
    shots: list[str]
    passages: list[str]
    turns: list[tuple[str, str]]
    facts: dict[str, Any] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)

    def row(self) -> Row:
        """Write the request."""
        facts = json.dumps(self.facts, ensure_ascii=False)
        system = "\n".join([*self.before, *self.system, facts])
        if self.turns:
            return chat(
                ("system", "\n\n".join([system, *self.passages])), *self.turns, tools=self.tools
            )
        asked = self.passages.pop()
        user = "\n\n".join([*self.passages, asked])
        return chat(
            ("system", "\n\n".join([system, *self.shots])), ("user", user), tools=self.tools
        )


Fault = Callable[[Parts, int, Texts], None]


def timestamp(parts: Parts, at: int, texts: Texts) -> None:
    parts.before.append(f"{texts.labels['time']}2026-11-{at + 11}T{at + 10}:15:{at + 30}Z")


def uuid(parts: Parts, at: int, texts: Texts) -> None:
    parts.system.insert(
        1, f"{texts.labels['session']}{at:x}f3a9c1d-11aa-4a2b-8c3d-0123456789a{at:x}"
    )


def identifier(parts: Parts, at: int, texts: Texts) -> None:
    parts.system.insert(3, f"{texts.labels['user']}usr_{(at + 3) * 7919 % 9973:x}k{at * 31:03d}")


def number(parts: Parts, at: int, texts: Texts) -> None:
    parts.before.append(f"{texts.labels['turn']}{at + 30}")


def seed(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    parts.system.append(f"seed={(at + 7) * 104729 % 99991}")


def json_key_order(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    items = list(parts.facts.items())
    cut = at % len(items)
    parts.facts = dict(items[cut:] + items[:cut])


def tool_order(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    cut = at % 3
    parts.tools = parts.tools[cut:] + parts.tools[:cut]


def schema_order(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    for place, tool in enumerate(parts.tools):
        function = tool["function"]
        if function["name"] == "book" and at % 2:
            schema = dict(reversed(function["parameters"].items()))
            parts.tools[place] = {**tool, "function": {**function, "parameters": schema}}


def whitespace(parts: Parts, at: int, texts: Texts) -> None:
    if at % 2:
        parts.system[parts.system.index(texts.rules[1])] += " "


def unicode_form(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    parts.system.append(unicodedata.normalize("NFKC", WIDE) if at % 2 else WIDE)


def retrieval_order(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    chunks = [parts.passages[i] for i in ORDERS[at % len(ORDERS)]]
    parts.passages = [*chunks, *parts.passages[4:]]


def few_shot_order(parts: Parts, at: int, texts: Texts) -> None:
    del texts
    parts.shots = [parts.shots[i] for i in ORDERS[(at * 3 + 1) % len(ORDERS)]]


def edited_history(parts: Parts, at: int, texts: Texts) -> None:
    if at >= REQUESTS // 2:
        parts.turns[1] = ("assistant", f"{texts.answers[0]} {texts.chunks[0]}")


FAULTS: dict[str, tuple[str, Fault]] = {
    made.__name__: (cause, made)
    for cause, made in (
        ("timestamp", timestamp),
        ("uuid", uuid),
        ("identifier", identifier),
        ("number", number),
        ("number", seed),
        ("json_key_order", json_key_order),
        ("tool_order", tool_order),
        ("json_key_order", schema_order),
        ("whitespace", whitespace),
        ("unicode_form", unicode_form),
        ("retrieval_order", retrieval_order),
        ("few_shot_order", few_shot_order),
        ("edited_history", edited_history),
    )
}
BESIDE = {frozenset({"few_shot_order", "edited_history"})}  # a log has either


def fault_pairs() -> list[tuple[str, str]]:
    """Return the pairs of faults that one log can have."""
    return [pair for pair in combinations(FAULTS, 2) if frozenset(pair) not in BESIDE]


def log_of(names: tuple[str, ...], texts: Texts) -> list[Row]:
    """Write a log with these faults."""
    return [_row(names, texts, at) for at in range(REQUESTS)]


def _row(names: tuple[str, ...], texts: Texts, at: int) -> Row:
    said = [
        (role, f"{text} {n // 2}")
        for n in range(REQUESTS)
        for role, text in (("user", texts.questions[n % 4]), ("assistant", texts.answers[n % 4]))
    ]
    ask, answer = texts.example
    parts = Parts(
        system=[texts.intro, *texts.rules],
        tools=list(TOOLS),
        shots=[
            f"{ask}: {q}\n{answer}: {a}"
            for q, a in zip(texts.questions, texts.answers, strict=True)
        ],
        passages=[*texts.chunks, f"{texts.questions[at % 4]} ({at})"],
        turns=said[: at * 2 + 1] if "edited_history" in names else [],
        facts={
            "place": texts.intro,
            "rule": texts.rules[0],
            "note": texts.chunks[0],
            "days": [1, 5],
        },
    )
    if parts.turns:
        parts.passages = [f"[Document] {chunk}" for chunk in texts.chunks]
    for name in names:
        FAULTS[name][1](parts, at, texts)
    return parts.row()
