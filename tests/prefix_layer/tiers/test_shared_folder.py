"""A KV folder outlives the engine that filled it, however it ended, and serves several at once."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from prefix_layer import EngineClient, EngineConfig, Generate, Sampling
from tests.prefix_layer.driving import make_engine, solo

BLOCK_SIZE = 4
LENGTH = 61
ANSWER = 2  # so few that only blocks of prompts are full
SALTS = (b"one", b"two")
PROMPTS = [
    [(seed * 37 + i * 11 + i * i * seed) % 300 + 10 for i in range(LENGTH)] for seed in range(1, 13)
]


def config(model_path: Path, kv_dir: Path) -> EngineConfig:
    """Make an engine whose pool holds two of the prompts."""
    return EngineConfig(
        model_path,
        dtype="float32",
        device="cpu",
        block_size=BLOCK_SIZE,
        kv_tokens=2 * (LENGTH + 7),
        max_batch_tokens=64,
        num_threads=1,
        disk_kv_bytes=1 << 24,
        kv_dir=kv_dir,
        kv_load="always",
    )


@asynccontextmanager
async def engine(config: EngineConfig) -> AsyncIterator[EngineClient]:
    client = EngineClient(config)
    await client.start()
    try:
        await client.wait_ready(120)
        yield client
    finally:
        await client.close()


async def ask(client: EngineClient, prompt: Sequence[int], salt: bytes = SALTS[0]) -> list[int]:
    token_ids: list[int] = []
    name = os.urandom(4).hex()
    command = Generate(name, list(prompt), Sampling(max_tokens=ANSWER, temperature=0.0), salt)
    async for tokens in client.generate(command):
        token_ids += tokens.token_ids
    return token_ids


async def disk_tokens(client: EngineClient) -> int:
    return (await client.stats()).tokens_by_source["disk"]


def block_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/*.kv"))


def is_writing(folder: Path) -> bool:
    """Say whether a file is half written; one that has just become a block is not."""
    for scratch in folder.glob("writers/*/*"):
        with suppress(FileNotFoundError):
            if scratch.stat().st_size:
                return True
    return False


async def until_written(folder: Path, count: int) -> list[Path]:
    """Wait for the writer to have caught up."""
    async with asyncio.timeout(30):
        while len(files := block_files(folder)) < count:
            await asyncio.sleep(0.01)
    return files


async def test_folder_serves_when_its_engine_was_killed_and_another_joins(
    tiny_llama: Path, tmp_path: Path
) -> None:
    """Kill while it writes, damage files, restart: hits come back and no token is wrong."""
    folder = tmp_path / "kv"
    plain = make_engine(tiny_llama)
    expected = [solo(plain, prompt, ANSWER).token_ids for prompt in PROMPTS]
    async with engine(config(tiny_llama, folder)) as first:
        for prompt, answer in zip(PROMPTS[:8], expected, strict=False):
            assert await ask(first, prompt) == answer
        await until_written(folder, 40)
        busy = [asyncio.create_task(ask(first, prompt)) for prompt in PROMPTS]
        while not is_writing(folder):
            await asyncio.sleep(0)
            if all(task.done() for task in busy):
                break
        killed = first.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await asyncio.gather(*busy, return_exceptions=True)
        while first.pid == killed:
            await asyncio.sleep(0.01)
        dead = folder / "writers" / "0123456789abcdef"
        dead.mkdir()
        (dead / "lock").touch()
        (dead / "block").write_bytes(b"half of a block")
        files = await until_written(folder, 40)
        files[3].write_bytes(files[3].read_bytes()[:-100])
        files[5].write_bytes(bytes(100))
        files[7].write_bytes(files[8].read_bytes())
        damaged = {files[i].name: files[i].read_bytes() for i in (3, 5, 7)}
        await first.wait_ready(120)

        for prompt, answer in zip(PROMPTS, expected, strict=True):
            assert await ask(first, prompt) == answer
        assert await disk_tokens(first) > 5 * LENGTH // 2
        assert not dead.exists()

        async with engine(config(tiny_llama, folder)) as second:
            for prompt, answer in zip(PROMPTS, expected, strict=True):
                assert await ask(second, prompt) == answer
                assert await ask(first, prompt) == answer
            assert await disk_tokens(second) > 5 * LENGTH
            left = {file.name: file.read_bytes() for file in block_files(folder)}
            assert not [name for name in damaged if left.get(name) == damaged[name]]
            both = [await first.stats(), await second.stats()]
            assert sum(stats.broken_by_tier["disk"] for stats in both) >= 1
            stranger = await disk_tokens(second)
            assert await ask(second, PROMPTS[0], SALTS[1]) == expected[0]
            assert await disk_tokens(second) == stranger
            assert (await second.stats()).failures_by_tier["disk"] == 0
