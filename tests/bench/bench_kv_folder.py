"""Does a folder of KV blocks need an index beside it? What it costs to ask the folder itself.

usage: python -m tests.bench.bench_kv_folder [--blocks 10000]

Two tiers over one folder, as two engines have: one writes, the other asks. Beside it a round trip
to a Redis on this machine, which an index there would cost a look-up.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from prefix_layer.tiers.block_key import BlockKey, BlockLayout
from prefix_layer.tiers.disk import DiskTier
from tests.contract.pair import redis_server

LAYOUT = BlockLayout(1, "model", "float32", "none", 16, [(3, 64, 64)])
PAYLOAD = memoryview(bytes(64))
ASKED = 1000


def key(number: int) -> BlockKey:
    return BlockKey(blake2b(b"%d" % number, digest_size=32).digest(), b"", (number,) * 16)


def each_us(ask: Callable[[int], object], numbers: range) -> float:
    """Return microseconds a question."""
    begin = time.perf_counter()
    for number in numbers:
        ask(number)
    return (time.perf_counter() - begin) / len(numbers) * 1e6


def measure(folder: Path, num_blocks: int) -> None:
    writer, reader = (DiskTier(folder / "kv", LAYOUT, 1 << 40) for _ in range(2))
    for number in range(num_blocks):
        assert writer.write(key(number), PAYLOAD)
    names = [key(number).own_hash for number in range(num_blocks + ASKED)]
    there = each_us(lambda i: reader.holds(names[i]), range(num_blocks))
    absent = each_us(lambda i: reader.holds(names[i]), range(num_blocks, num_blocks + ASKED))
    fresh = range(2 * num_blocks, 2 * num_blocks + 200)
    unseen = sum(writer.write(key(i), PAYLOAD) and not reader.holds(key(i).own_hash) for i in fresh)
    begin = time.perf_counter()
    reader.look_around()
    scan_ms = (time.perf_counter() - begin) * 1e3
    retry = Retry(ConstantBackoff(0.1), 100)
    with redis_server(folder) as url, redis.Redis.from_url(url, retry=retry) as index:
        index.ping()
        asked = each_us(lambda i: index.exists(names[i]), range(ASKED))
    print(f"{num_blocks} blocks, one stat a block: there {there:.1f} us, absent {absent:.1f} us")
    print(f"just written by the other engine and not seen at once: {unseen} of {len(fresh)}")
    print(f"whole folder read, to keep its limit: {scan_ms:.0f} ms, off the engine's thread")
    print(f"Redis on this machine, one EXISTS: {asked:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        measure(Path(room), options.blocks)


if __name__ == "__main__":
    main()
