"""How long does a page of the dashboard take with very many recorded requests?

usage: python -m tests.bench.bench_dashboard [--requests 50000] [--repeats 5]

The requests are written as a gateway writes them, over a day, then a gateway is started over them.
Its pages are fetched one after the other; a page is to take less than a second.
"""

import argparse
import asyncio
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from gateway.bundled import default_models_dir
from gateway.dashboard.page import PAGES
from gateway.evidence.request_log import RequestLog
from gateway.record import CacheOutcome, RequestRecord, Spoken
from semantic_layer import Candidate, Judgement
from semantic_layer.stores.redis_connection import RedisConnection
from semantic_layer.stores.redis_journal import RedisJournal
from semantic_layer.stores.valkey import Valkey
from tests.contract.stack import serving

DAY_S = 86400
OUTCOMES: tuple[CacheOutcome, ...] = ("exact", "semantic", "miss", "bypass")
INTENTS = ("factual", "general", "code", "translation")
FRAGMENTS = ("/dashboard/requests?outcome=miss&text=1999", "/dashboard/requests?intent=none")


def requests(count: int) -> Iterator[RequestRecord]:
    """Yield requests as they might have been."""
    rng = random.Random(1)
    for at in range(count):
        text = f"Where do I find article {at % 5000} of catalogue {rng.randrange(40)}?"
        intent = rng.choice(INTENTS)
        stored = tuple(
            Candidate(f"{at:08x}{n:024x}", rng.uniform(0.8, 1), rng.random(), ()) for n in range(2)
        )
        yield RequestRecord(
            request_id=f"req-{at}",
            route="/v1/chat/completions",
            tenant=f"tenant-{at % 7}",
            model="stub-model",
            intent=intent,
            outcome=rng.choice(OUTCOMES),
            end="ok",
            seconds=rng.expovariate(1),
            ttft_s=0.1,
            usage=None,
            judgement=Judgement(intent, 0.9, 0.95, rng.random(), (), stored, text),
            spoken=Spoken({"messages": [{"role": "user", "content": text}]}, answer=text),
        )


async def fill(url: str, count: int) -> None:
    """Write the requests, evenly over the last day."""
    connection = RedisConnection(url, command_timeout_s=30)
    ticks = itertools.count(1)
    begin = time.time() - DAY_S
    log = RequestLog(
        RedisJournal(connection),
        most=2 * count,
        texts=True,
        scorer=lambda: "bench",
        clock=lambda: begin + next(ticks) * DAY_S / count,
    )
    for record in requests(count):
        log.record(record)
        if record.request_id.endswith("99"):
            await log.flush()
    await log.flush()
    await connection.close()


def clock_pages(url: str, repeats: int) -> dict[str, list[float]]:
    """Return the seconds that each page took."""
    taken: dict[str, list[float]] = {page: [] for page in (*PAGES.values(), *FRAGMENTS)}
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
        for _, page in itertools.product(range(repeats), taken):
            begin = time.perf_counter()
            response = http.get(page)
            taken[page].append(time.perf_counter() - begin)
            response.raise_for_status()
    return taken


async def measure(options: argparse.Namespace, folder: Path) -> None:
    """Fill a store, start a gateway over it and print what its pages take."""
    valkey = await Valkey.start(folder / "valkey")
    try:
        await fill(valkey.url, options.requests)
        settings = {
            "REDIS__URL": valkey.url,
            "REQUESTS__KEPT": str(2 * options.requests),
            "LOCAL__MODEL": "none",
        }
        models = default_models_dir(os.environ)
        with serving(folder / "gateway", models, **settings) as stack:
            taken = await asyncio.to_thread(clock_pages, stack.url, options.repeats)
    finally:
        await valkey.stop()
    for page, seconds in taken.items():
        print(f"{page:48} median {statistics.median(seconds):.3f} s  most {max(seconds):.3f} s")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, Path(folder)))


if __name__ == "__main__":
    main()
