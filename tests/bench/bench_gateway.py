"""Measure a running gateway over HTTP: hits a second, latency by outcome, time to first token.

usage: python -m tests.bench.bench_gateway [--seconds 8] [--json]

Starts `strata serve` with embedded stores and the bundled models in a temporary folder. Exact hits
are driven by wrk (one thread, 16 connections) where it is installed, else left out by name.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from gateway.bundled import default_models_dir, prepare
from tests.contract.stack import Stack

QUESTION = "What is the capital of France?"
REWORDED = "Which city is the capital of France?"
RULES = "Answer in one short sentence, be polite and avoid technical words. " * 70
REPEATS = 30
LUA = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[%s]==]
"""


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """Return a greedy request with one user message."""
    return {
        "model": "smollm2-135m-instruct",
        "temperature": 0,
        "max_tokens": 24,
        "messages": [{"role": "user", "content": text}],
        **fields,
    }


class Meter:
    """Asks one gateway and clocks the answers."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def ask(self, body: dict[str, Any], **headers: str) -> tuple[str, float]:
        """Return the cache outcome and the seconds the whole answer took."""
        begin = time.perf_counter()
        response = self._http.post("/v1/chat/completions", json=body, headers=headers)
        seconds = time.perf_counter() - begin
        response.raise_for_status()
        return response.headers["x-strata-cache"], seconds

    def ttft(self, body: dict[str, Any]) -> float:
        """Return the seconds to the first text of a stream, caches bypassed."""
        headers = {"Cache-Control": "no-cache, no-store"}
        begin = time.perf_counter()
        with self._http.stream(
            "POST", "/v1/chat/completions", json={**body, "stream": True}, headers=headers
        ) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                if line.startswith("data: {") and '"content":""' not in line:
                    return time.perf_counter() - begin
        raise AssertionError("no text")

    def median_ms(self, body: dict[str, Any], outcome: str) -> float:
        """Return the median milliseconds of answers with this outcome."""
        times = []
        for _ in range(REPEATS):
            found, seconds = self.ask(body, **{"Cache-Control": "no-store"})
            assert found == outcome, f"{found} where {outcome} was expected"
            times.append(seconds)
        return statistics.median(times) * 1000

    def prefix_ms(self) -> tuple[float, float]:
        """Return milliseconds to the first token, prefix cold and warm, medians of three."""
        cold, warm = [], []
        for turn in range(3):
            system = {"role": "system", "content": f"Handbook {turn}. {RULES}"}
            for place, times in enumerate((cold, warm)):
                user = {"role": "user", "content": f"Question {place}: name a colour."}
                times.append(self.ttft(chat("", messages=[system, user], max_tokens=1)))
        return statistics.median(cold) * 1000, statistics.median(warm) * 1000

    def hits_per_second(self, seconds: int) -> float | None:
        """Return exact hits a second under wrk; None where wrk is absent."""
        wrk = shutil.which("wrk")
        if wrk is None:
            return None
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(LUA % json.dumps(chat(QUESTION)))
            script.flush()
            load = [wrk, "-t1", "-c16", f"-d{seconds}s", "--latency", "-s", script.name]
            out = subprocess.run(
                [*load, f"{self._url}/v1/chat/completions"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        assert "Non-2xx" not in out, out
        return next(
            float(line.split(":")[1])
            for line in out.splitlines()
            if line.startswith("Requests/sec")
        )


def measure(url: str, seconds: int) -> dict[str, float | None]:
    """Return all figures of one gateway."""
    meter = Meter(url)
    meter.ask(chat(QUESTION))
    cold_ms, warm_ms = meter.prefix_ms()
    return {
        "exact hit, p50 ms": meter.median_ms(chat(QUESTION), "exact"),
        "semantic hit, p50 ms": meter.median_ms(chat(REWORDED), "semantic"),
        "first token, cold prefix, ms": cold_ms,
        "first token, warm prefix, ms": warm_ms,
        "exact hits per second (wrk, 16 connections)": meter.hits_per_second(seconds),
    }


def main() -> None:
    """Start a gateway, measure it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8, help="how long wrk runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    models_dir = Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))
    prepare(models_dir)
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder), models_dir, {})
        stack.start()
        try:
            figures = measure(stack.url, options.seconds)
        finally:
            stack.close()
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:45} {'left out: no wrk' if value is None else f'{value:10.1f}'}")


if __name__ == "__main__":
    main()
