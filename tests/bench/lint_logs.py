"""Logs for `bench_lint`, each with the faults of its kind: an agent's and a retriever's."""

import json
from pathlib import Path
from typing import Any

from gateway.scenarios import Words

Row = dict[str, Any]
STEPS = 6
TOPICS = 40
PASSAGES = 5


def agent_log(num_requests: int) -> list[Row]:
    """Agents that look things up, step by step; the time and the order of tools change."""
    words = Words(1)
    rules = "\n".join(words.text(8) for _ in range(4))
    tools = [_tool(f"tool_{at}", words.text(4)) for at in range(2)]
    rows: list[Row] = []
    while len(rows) < num_requests:
        said = [{"role": "user", "content": words.text(10)}]
        for step in range(STEPS):
            at = len(rows)
            clock = f"2026-11-30T{at // 60 % 24:02}:{at % 60:02}:{step:02}Z"
            text = f"You are an agent.\nCurrent time: {clock}\n{rules}"
            system = {"role": "system", "content": text}
            order = words.rng.sample(tools, len(tools))
            rows.append({"model": "m", "messages": [system, *said], "tools": order})
            said = [
                *said,
                {"role": "assistant", "content": words.text(4)},
                {"role": "user", "content": f"Result {step}: {words.text(6)}"},
            ]
    return rows[:num_requests]


def _tool(name: str, about: str) -> Row:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    function = {"name": name, "description": about, "parameters": parameters}
    return {"type": "function", "function": function}


def rag_log(num_requests: int) -> list[Row]:
    """Questions on topics, each with the topic's passages, ranked anew every time."""
    words = Words(2)
    system = {"role": "system", "content": words.text(10)}
    topics = [[words.text(16) for _ in range(PASSAGES)] for _ in range(TOPICS)]
    rows = []
    for _ in range(num_requests):
        passages = words.rng.choice(topics)
        shown = words.rng.sample(passages, len(passages))
        user = "\n\n".join([*shown, words.text(8)])
        rows.append({"model": "m", "messages": [system, {"role": "user", "content": user}]})
    return rows


LOGS = {"agent": agent_log, "rag": rag_log}


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]
