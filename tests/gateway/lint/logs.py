"""Small logs, each with one named fault or none, in several languages."""

import json
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.gateway.lint.texts import LANGUAGES, Texts

Row = dict[str, Any]
REQUESTS = 5


@dataclass(frozen=True)
class Log:
    """``cause`` is None for a clean log; ``field`` and ``char`` are where the fault must be."""

    name: str
    rows: list[Row]
    cause: str | None = None
    field: str = "messages[0].content"
    char: int = 0
    kind: str = ""


def chat(*said: tuple[str, str], **more: Any) -> Row:
    return {"model": "m", "messages": [{"role": r, "content": c} for r, c in said], **more}


def system_of(texts: Texts, line: str = "", at: int = 0) -> str:
    lines = [texts.intro, *texts.rules]
    return "\n".join([*lines[:at], line, *lines[at:]] if line else lines)


def in_system(texts: Texts, label: str, values: list[str], at: int = 1) -> tuple[list[Row], int]:
    """Put a line that differs into each system prompt; return where it differs too."""
    rows = [
        chat(
            ("system", system_of(texts, label + value + "\n" * 0, at)), ("user", question(texts, i))
        )
        for i, value in enumerate(values)
    ]
    return rows, system_of(texts, "\0" + label, at).index("\0") + len(label)


def question(texts: Texts, i: int) -> str:
    return texts.questions[i % len(texts.questions)]


def tool(name: str, about: str, **parameters: Any) -> Row:
    schema = {"type": "object", "properties": parameters, "required": sorted(parameters)}
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": schema},
    }


TOOLS = [
    tool("search", "Finds entries in the handbook", query={"type": "string", "minLength": 2}),
    tool("book", "Books a place for a visitor", day={"type": "string"}, people={"type": "integer"}),
    tool("call", "Calls a person who can help further", reason={"type": "string"}),
]


def timestamps(texts: Texts) -> Iterator[Log]:
    values = [f"2026-11-{20 + i:02}T0{i}:15:3{i}Z" for i in range(REQUESTS)]
    rows, char = in_system(texts, texts.labels["time"], values)
    yield Log("timestamp", rows, "timestamp", char=char)


def uuids(texts: Texts) -> Iterator[Log]:
    values = [f"{i}a3bc{i}d0-11aa-4a2b-8c3d-0123456789a{i}" for i in range(REQUESTS)]
    values = [
        v[:8].ljust(8, "f") + "-11aa-4a2b-8c3d-0123456789a" + str(i) for i, v in enumerate(values)
    ]
    rows, char = in_system(texts, texts.labels["session"], values, at=0)
    yield Log("uuid", rows, "uuid", char=char, kind="session id")


def identifiers(texts: Texts) -> Iterator[Log]:
    values = ["usr_8fk3k2x0", "usr_k9f3j1aa", "usr_0zz81mmq", "usr_p4p4x7yt", "usr_q1w2e3r4"]
    rows, char = in_system(texts, texts.labels["user"], values, at=2)
    yield Log("identifier", rows, "identifier", char=char, kind="user id")


def counters(texts: Texts) -> Iterator[Log]:
    rows, char = in_system(texts, texts.labels["turn"], [str(11 + i) for i in range(REQUESTS)])
    yield Log("counter", rows, "number", char=char, kind="counter")


def seeds(texts: Texts) -> Iterator[Log]:
    values = ["83911", "17", "550123", "9042", "771"]
    rows, char = in_system(texts, "seed=", values, at=3)
    yield Log("seed", rows, "number", char=char, kind="random seed")


def json_key_order(texts: Texts) -> Iterator[Log]:
    facts = {
        "place": texts.intro,
        "rule": texts.rules[0],
        "note": texts.chunks[0],
        "hours": [9, 17],
    }
    orders = [dict(list(facts.items())[i:] + list(facts.items())[:i]) for i in (0, 2, 1, 3, 0)]
    rows, char = in_system(texts, "", [json.dumps(o, ensure_ascii=False) for o in orders], at=2)
    yield Log("json_key_order", rows, "json_key_order", char=char + 2)


def tool_order(texts: Texts) -> Iterator[Log]:
    orders = [TOOLS, TOOLS[::-1], [TOOLS[1], TOOLS[0], TOOLS[2]], TOOLS[::-1], TOOLS]
    rows = [
        chat(("system", system_of(texts)), ("user", question(texts, i)), tools=tools)
        for i, tools in enumerate(orders)
    ]
    yield Log("tool_order", rows, "tool_order", field="tools", char=-1)


SCHEMA = "tools[1].function.parameters.properties"


def schema_order(texts: Texts) -> Iterator[Log]:
    function = TOOLS[1]["function"]
    flipped = {
        **function["parameters"],
        "properties": {"people": {"type": "integer"}, "day": {"type": "string"}},
    }
    other = {"type": "function", "function": {**function, "parameters": flipped}}
    rows = [
        chat(
            ("system", system_of(texts)),
            ("user", question(texts, i)),
            tools=[TOOLS[0], other if i % 2 else TOOLS[1], TOOLS[2]],
        )
        for i in range(REQUESTS)
    ]
    yield Log("schema_order", rows, "json_key_order", field=SCHEMA, char=-1)


def whitespace(texts: Texts) -> Iterator[Log]:
    system = system_of(texts)
    end = len(texts.intro)
    spaced = system[:end] + " " + system[end:]
    rows = [
        chat(("system", spaced if i % 2 else system), ("user", question(texts, i)))
        for i in range(REQUESTS)
    ]
    yield Log("whitespace", rows, "whitespace", char=end)


def unicode_forms(texts: Texts) -> Iterator[Log]:
    plain = system_of(texts, "Ｃｏｄｅ：ａｂｃ（ｄｅｆ）", 1)
    rows = [
        chat(
            ("system", unicodedata.normalize("NFKC", plain) if i % 2 else plain),
            ("user", question(texts, i)),
        )
        for i in range(REQUESTS)
    ]
    yield Log("unicode_form", rows, "unicode_form", char=-1)


def retrieval_order(texts: Texts) -> Iterator[Log]:
    orders = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (2, 3, 0, 1)]
    rows = [
        chat(
            ("system", system_of(texts)),
            ("user", "\n\n".join([*(texts.chunks[at] for at in order), question(texts, i)])),
        )
        for i, order in enumerate(orders)
    ]
    yield Log("retrieval_order", rows, "retrieval_order", field="messages[1].content", char=0)


def few_shot_order(texts: Texts) -> Iterator[Log]:
    ask, answer = texts.example
    shots = [
        f"{ask}: {q}\n{answer}: {a}" for q, a in zip(texts.questions, texts.answers, strict=True)
    ]
    orders = [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2), (1, 3, 2, 0), (2, 3, 0, 1)]
    rows = [
        chat(
            ("system", "\n\n".join([system_of(texts), *(shots[at] for at in order)])),
            ("user", texts.chunks[i % 4]),
        )
        for i, order in enumerate(orders)
    ]
    yield Log("few_shot_order", rows, "few_shot_order", char=-1)


def conversation(texts: Texts, length: int) -> list[tuple[str, str]]:
    said = [("system", system_of(texts))]
    for i in range(length):
        said += [("user", texts.questions[i]), ("assistant", texts.answers[i])]
    return said


def dropped_history(texts: Texts) -> Iterator[Log]:
    said = conversation(texts, 4)
    rows = [chat(*said[: 2 + 2 * i]) for i in range(3)]
    rows.append(chat(said[0], *said[3:8]))
    yield Log(
        "dropped_history",
        rows,
        "edited_history",
        field="messages[1].content",
        char=0,
        kind="dropped",
    )


def edited_history(texts: Texts) -> Iterator[Log]:
    said = conversation(texts, 4)
    rows = [chat(*said[: 2 + 2 * i]) for i in range(3)]
    changed = ("assistant", texts.answers[0] + " " + texts.chunks[0])
    rows.append(chat(*said[:2], changed, *said[3:8]))
    yield Log(
        "edited_history",
        rows,
        "edited_history",
        field="messages[2].content",
        char=-1,
        kind="edited",
    )


def clean(texts: Texts) -> Iterator[Log]:
    single = [chat(("system", system_of(texts)), ("user", question(texts, i))) for i in range(4)]
    yield Log("clean-questions", single)
    said = conversation(texts, 4)
    yield Log("clean-conversation", [chat(*said[: 2 + 2 * i]) for i in range(4)])
    passages = "\n\n".join(texts.chunks)
    rag = [
        chat(("system", system_of(texts)), ("user", f"{passages}\n\n{q}")) for q in texts.questions
    ]
    yield Log("clean-rag", rag)
    tools = [chat(("user", q), tools=TOOLS) for q in texts.questions]
    yield Log("clean-tools", tools)


FAULTS: list[Callable[[Texts], Iterator[Log]]] = [
    timestamps,
    uuids,
    identifiers,
    counters,
    seeds,
    json_key_order,
    tool_order,
    schema_order,
    whitespace,
    unicode_forms,
    retrieval_order,
    few_shot_order,
    dropped_history,
    edited_history,
]


def faulty_logs() -> list[tuple[str, Log]]:
    """Return every fault in every language."""
    return [
        (f"{language}-{log.name}", log)
        for language, texts in LANGUAGES.items()
        for fault in FAULTS
        for log in fault(texts)
    ]


def clean_logs() -> list[tuple[str, Log]]:
    """Return the logs without a fault."""
    return [
        (f"{language}-{log.name}", log)
        for language, texts in LANGUAGES.items()
        for log in clean(texts)
    ]
