"""Memory of a gateway over 20,000 streamed requests, as shares of what it was after the first."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import psutil

from gateway.bundled import default_models_dir
from tests.contract.stack import serving, upstream_toml
from tests.contract.streaming import request, stream_all
from tests.fakes.upstream import FakeUpstream

NUM_STREAMS = 20_000
STEP = 2_000
CONTROLS = ("", "no-store", "no-cache, no-store")


def main() -> None:
    """Stream, and print the resident memory after every `STEP` requests."""
    models_dir = Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))
    with (
        tempfile.TemporaryDirectory() as folder,
        FakeUpstream() as fake,
        serving(
            Path(folder),
            models_dir,
            toml=upstream_toml(fake.base_url),
            LOCAL__MODEL="none",
            SEMANTIC__ENABLED="false",
        ) as stack,
    ):
        process, first = psutil.Process(stack.pid), 0
        started = time.monotonic()

        def look(num_done: int) -> None:
            nonlocal first
            fake.calls.clear()
            if num_done % STEP == 0:
                rss = process.memory_info().rss
                first = first or rss
                rate = num_done / (time.monotonic() - started)
                print(
                    f"{num_done:6d} streams {rss / 2**20:6.1f} MB  x{rss / first:.3f}  {rate:.0f}/s"
                )

        requests = [
            request(f"Say {at % 500}.", cache_control=CONTROLS[at % 3]) for at in range(NUM_STREAMS)
        ]
        asyncio.run(stream_all(stack.port, requests, connections=8, on_done=look))


if __name__ == "__main__":
    main()
