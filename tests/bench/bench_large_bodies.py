"""Measure how long one large request keeps the event loop of a gateway from all others.

usage: python -m tests.bench.bench_large_bodies [--megabytes 8] [--where] [--json]

The gateway runs in this process, over embedded stores, the bundled embedder and an upstream of
another process that answers in a word. Each kind of body is sent twice, a miss and an exact repeat,
and both times the longest gap between two turns of the loop is read.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx

from gateway.app import create_app
from gateway.bundled import default_models_dir, prepare
from gateway.settings import load_settings
from tests.contract.stack import upstream_toml
from tests.fakes.upstream import Answer, Call, FakeUpstream, streamed

ENGLISH = "The order {} of 12 March left the warehouse late, and nobody told me why. "
CHINESE = "订单{}在三月十二日才从仓库发出，没有人告诉我为什么。"
SETTLE_S = 3.0  # what is written back after the answer counts too
OURS = ("gateway", "semantic_layer")


def grown(line: str, size: int) -> str:
    """Return a text of so many bytes of lines that all differ."""
    per_line = len(line.encode()) + 5
    return "".join(line.format(i) for i in range(size // per_line))


def bodies(size: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return path and body of each kind of large request."""
    text = grown(ENGLISH, size)
    asked = {"role": "user", "content": "Why was it late?"}
    parts = [{"type": "text", "text": ENGLISH.format(i)} for i in range(size // 120)]
    talk = [
        {"role": ("user", "assistant")[i % 2], "content": ENGLISH.format(i)}
        for i in range(size // 130)
    ]
    chat, image = "/v1/chat/completions", f"data:image/png;base64,{'iVBORw0K' * (size // 8)}"
    picture = [{"type": "image_url", "image_url": {"url": image}}, {"type": "text", "text": "?"}]
    return {
        "one question": (chat, {"messages": [{"role": "user", "content": text}]}),
        "one word": (chat, {"messages": [{"role": "user", "content": "a" * size}]}),
        "Chinese": (chat, {"messages": [{"role": "user", "content": grown(CHINESE, size)}]}),
        "system prompt": (chat, {"messages": [{"role": "system", "content": text}, asked]}),
        "history": (chat, {"messages": [{"role": "user", "content": text}, *talk[1:2], asked]}),
        "many messages": (chat, {"messages": [*talk[: len(talk) // 2 * 2], asked]}),
        "many parts": (chat, {"messages": [{"role": "user", "content": parts}]}),
        "picture": (chat, {"messages": [{"role": "user", "content": picture}]}),
        "messages": ("/v1/messages", {"max_tokens": 9, "messages": [{**asked, "content": text}]}),
        "responses": ("/v1/responses", {"input": text}),
        "completions": ("/v1/completions", {"prompt": text}),
    }


class Pulse:
    """Reads the longest time between two turns of the loop; ``where`` names what ran meanwhile."""

    def __init__(self, *, where: bool) -> None:
        self.longest_s = 0.0
        self.found: Counter[str] = Counter()
        self._beat = time.perf_counter()
        self._is_on = True
        self._main = threading.get_ident()
        asyncio.get_running_loop().call_later(0.001, self._tick)
        if where:
            threading.Thread(target=self._look, daemon=True).start()

    def stop(self) -> None:
        self._is_on = False

    def _tick(self) -> None:
        now = time.perf_counter()
        self.longest_s, self._beat = max(self.longest_s, now - self._beat), now
        if self._is_on:
            asyncio.get_running_loop().call_later(0.001, self._tick)

    def _look(self) -> None:
        while self._is_on:
            time.sleep(0.005)
            if time.perf_counter() - self._beat > 0.02:
                stack = traceback.extract_stack(sys._current_frames()[self._main])
                ours = [frame for frame in stack if _is_ours(frame)][-3:]
                names = [f"{Path(f.filename).stem}.{f.name}:{f.lineno}" for f in ours]
                self.found[" > ".join(names)] += 1


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return any(f"{os.sep}{package}{os.sep}" in frame.filename for package in OURS)


def _serve(line: Connection) -> None:
    def answer(_: Call) -> Answer:
        return Answer(streamed(["Late."]))

    with FakeUpstream(answer) as fake:
        line.send(fake.base_url)
        line.recv()


@contextmanager
def upstream() -> Iterator[str]:
    """Run an upstream in another process; give its address."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,))
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send(None)
        process.join()


async def measure(folder: Path, base_url: str, size: int, *, where: bool) -> dict[str, Any]:
    """Return the longest gap in ms of each kind, missed and repeated."""
    config = folder / "strata.toml"
    config.write_text(upstream_toml(base_url), encoding="utf-8")
    environment = {
        "STRATA_DATA_DIR": str(folder / "data"),
        "STRATA_LOCAL__MODEL": "none",
        "STRATA_LOG__LEVEL": "error",
    }
    app = create_app(load_settings(config, {**os.environ, **environment}))
    figures: dict[str, Any] = {}
    async with app.lifespan():
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://x", timeout=99) as http:
            for kind, (path, fields) in bodies(size).items():
                data = json.dumps({"model": "stub-model", **fields}, ensure_ascii=False).encode()
                for turn in ("first", "again"):
                    pulse = Pulse(where=where)
                    begin = time.perf_counter()
                    headers = {"content-type": "application/json"}
                    response = await http.post(path, content=data, headers=headers)
                    whole_s = time.perf_counter() - begin
                    await asyncio.sleep(SETTLE_S)
                    pulse.stop()
                    outcome = response.headers.get("x-strata-cache", str(response.status_code))
                    figures[f"{kind}, {turn}: {outcome}"] = {
                        "longest_ms": round(pulse.longest_s * 1000, 1),
                        "answer_ms": round(whole_s * 1000, 1),
                        "where": pulse.found.most_common(6),
                    }
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--where", action="store_true", help="name what ran during long gaps")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prepare(Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ)))
    with tempfile.TemporaryDirectory() as folder, upstream() as base_url:
        size = int(options.megabytes * 2**20)
        figures = asyncio.run(measure(Path(folder), base_url, size, where=options.where))
    if options.json:
        print(json.dumps(figures, indent=2, ensure_ascii=False))
        return
    for kind, figure in figures.items():
        print(f"{kind:28} {figure['longest_ms']:9} ms longest {figure['answer_ms']:9} ms answer")
        for place, count in figure["where"]:
            print(f"      {count:4} {place}")


if __name__ == "__main__":
    main()
