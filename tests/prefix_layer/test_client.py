"""The asyncio client over a spawned process whose engine has no model: life, death, restart."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest
import uvloop

from prefix_layer import (
    EngineClient,
    EngineConfig,
    EngineFailed,
    EngineUnavailable,
    Generate,
    Sampling,
    Tokens,
)
from prefix_layer.client import _End
from prefix_layer.config import decode_config, encode_config
from tests.fakes.engine import BROKEN, DIES_LOADING, HANGS, LAST_BREATH, PROGRAM, REFUSED

START_S = 30.0
LONG = 1_000_000


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[EngineClient]:
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM, backoff_s=0.01)
    await client.start()
    await client.wait_ready(START_S)
    yield client
    await client.close()


def generate(request_id: str, *prompt: int, max_tokens: int = 5) -> Generate:
    return Generate(request_id, list(prompt), Sampling(max_tokens))


async def ids(client: EngineClient, command: Generate) -> list[int]:
    return [token async for tokens in client.generate(command) for token in tokens.token_ids]


async def ids_after_kill(client: EngineClient, command: Generate) -> None:
    """Kill the engine at the first token and read on."""
    engine = psutil.Process(client.pid)
    async with aclosing(client.generate(command)) as events:
        await anext(events)
        engine.kill()
        await drain(events)


async def drain(events: AsyncIterator[Tokens]) -> None:
    async for _ in events:
        pass


async def test_every_token_arrives_in_order_when_requests_run_at_once(client: EngineClient) -> None:
    """Concurrent requests never mix."""
    answers = await asyncio.gather(*(ids(client, generate(f"r{n}", n, n + 1)) for n in range(8)))
    assert answers == [[n, n + 1, n, n + 1, n] for n in range(8)]


async def test_sequence_is_aborted_when_the_iterator_is_closed(client: EngineClient) -> None:
    """A reader that goes away leaves nothing running."""
    async with aclosing(client.generate(generate("a", 1, max_tokens=LONG))) as events:
        await anext(events)
        assert (await client.stats()).num_running == 1
    assert (await client.stats()).num_running == 0


async def test_request_fails_with_its_code_when_the_engine_refuses(client: EngineClient) -> None:
    """A refusal is an error with the engine's code and words."""
    with pytest.raises(EngineFailed, match="no room") as caught:
        await ids(client, generate("a", REFUSED))
    assert caught.value.code == "kv_exhausted"


async def test_work_fails_and_the_engine_restarts_when_it_is_killed(
    client: EngineClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A kill -9 fails what is in flight with a clear code; the next request works."""
    before = client.ready
    old = client.pid
    assert old is not None
    with pytest.raises(EngineFailed, match="SIGKILL") as caught:
        await ids_after_kill(client, generate("a", 1, max_tokens=LONG))
    assert caught.value.code == "engine_restarted"
    assert client.state == "restarting"
    assert client.ready is None
    with pytest.raises(EngineUnavailable, match="restarting"):
        await ids(client, generate("b", 1))
    ready = await client.wait_ready(START_S)
    assert before is not None
    assert ready.model_fingerprint == before.model_fingerprint
    assert client.pid != old
    assert await ids(client, generate("a", 4, max_tokens=2)) == [4, 4]
    assert "engine is restarting" in caplog.text


async def test_engine_restarts_each_time_when_requests_kill_it(client: EngineClient) -> None:
    """Two deaths in a row are survived."""
    for _ in range(2):
        with pytest.raises(EngineFailed):
            await ids(client, generate("a", LAST_BREATH))
        await client.wait_ready(START_S)
    assert client.num_restarts == 2


async def test_engine_is_replaced_when_a_step_never_returns(tmp_path: Path) -> None:
    """A hang is ended like a crash."""
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM, hang_timeout_s=0.2)
    await client.start()
    await client.wait_ready(START_S)
    try:
        with pytest.raises(EngineFailed, match="hung"):
            await ids(client, generate("a", HANGS))
        await client.wait_ready(START_S)
        assert await ids(client, generate("b", 3, max_tokens=1)) == [3]
    finally:
        await client.close()


async def test_state_is_failed_with_one_line_when_the_model_cannot_load(tmp_path: Path) -> None:
    """A model that cannot be loaded is said in one line and not tried again."""
    client = EngineClient(EngineConfig(tmp_path / BROKEN), program=PROGRAM, backoff_s=0.01)
    await client.start()
    with pytest.raises(EngineUnavailable) as caught:
        await client.wait_ready(START_S)
    assert str(caught.value) == f"no model in {tmp_path / BROKEN}"
    assert client.state == "failed"
    assert client.num_restarts == 0
    await client.close()


async def test_state_is_failed_when_the_process_always_dies_loading(tmp_path: Path) -> None:
    """A process that dies without a word is tried a few times, then given up."""
    client = EngineClient(EngineConfig(tmp_path / DIES_LOADING), program=PROGRAM, backoff_s=0.01)
    await client.start()
    with pytest.raises(EngineUnavailable, match=r"while loading.*SIGKILL"):
        await client.wait_ready(START_S)
    assert client.state == "failed"
    await client.close()


async def test_state_is_failed_when_the_program_is_not_there(tmp_path: Path) -> None:
    """A program that cannot be started is a clear failure."""
    client = EngineClient(EngineConfig(tmp_path), program=(str(tmp_path / "none"),))
    await client.start()
    with pytest.raises(EngineUnavailable, match="cannot be started"):
        await client.wait_ready(START_S)
    await client.close()


async def test_nothing_is_left_when_closed_in_the_middle_of_work(tmp_path: Path) -> None:
    """Closing ends the process and its folder, and fails what is in flight."""
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM)
    await client.start()
    await client.wait_ready(START_S)
    process = psutil.Process(client.pid)
    folder = Path(process.cmdline()[process.cmdline().index("--socket") + 1]).parent
    assert folder.name.startswith("strata-")
    assert not folder.exists(), "a kill -9 now would leave it behind"
    async with aclosing(client.generate(generate("a", 1, max_tokens=LONG))) as events:
        await anext(events)
        await client.close()
        with pytest.raises(EngineFailed):
            await drain(events)
    await client.close()
    assert not process.is_running()
    assert not folder.exists()
    assert client.state == "closed"
    with pytest.raises(EngineUnavailable, match="closed"):
        await client.wait_ready(1)


async def test_nothing_is_left_when_closed_while_loading(tmp_path: Path) -> None:
    """Closing needs no ready engine."""
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM)
    await client.start()
    while client.pid is None:
        await asyncio.sleep(0)
    process = psutil.Process(client.pid)
    folder = Path(process.cmdline()[process.cmdline().index("--socket") + 1]).parent
    assert folder.is_dir()
    await client.close()
    assert not process.is_running()
    assert not folder.exists()


async def test_stopped_process_is_killed_when_closed(tmp_path: Path) -> None:
    """A process that ignores the polite signal does not outlive its client."""
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM)
    await client.start()
    await client.wait_ready(START_S)
    process = psutil.Process(client.pid)
    process.send_signal(signal.SIGSTOP)
    await client.close()
    assert not process.is_running()


def test_engine_dies_when_its_parent_is_killed(tmp_path: Path) -> None:
    """A kill -9 of the gateway leaves no engine behind."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        engine = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    psutil.wait_procs([engine], timeout=10)
    assert not engine.is_running()


def test_engine_ends_when_its_standard_input_does(tmp_path: Path) -> None:
    """Where no signal tells of a parent's death, the closed pipe does."""
    engine = subprocess.Popen(
        [
            *PROGRAM,
            *("--socket", str(tmp_path / "s")),
            *("--config", encode_config(EngineConfig(tmp_path))),
            *("--parent", str(os.getpid())),
        ],
        stdin=subprocess.PIPE,
    )
    with engine:
        assert engine.stdin is not None
        engine.stdin.close()
        assert engine.wait(START_S) != 0


_PARENT = textwrap.dedent("""
    import asyncio, pathlib, sys
    from prefix_layer import EngineClient, EngineConfig
    from tests.fakes.engine import PROGRAM

    async def main():
        client = EngineClient(EngineConfig(pathlib.Path(sys.argv[1])), program=PROGRAM)
        await client.start()
        await client.wait_ready(30)
        print(client.pid, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
""")


def test_client_works_when_the_loop_is_uvloop(tmp_path: Path) -> None:
    """The whole life of an engine passes under uvloop: start, work, abort, kill, restart, close."""

    async def life() -> list[int]:
        client = EngineClient(EngineConfig(tmp_path), program=PROGRAM, backoff_s=0.01)
        await client.start()
        await client.wait_ready(START_S)
        async with aclosing(client.generate(generate("a", 1, max_tokens=LONG))) as events:
            await anext(events)
        psutil.Process(client.pid).kill()
        with pytest.raises(EngineFailed):
            await ids(client, generate("b", 1, max_tokens=LONG))
        await client.wait_ready(START_S)
        try:
            return await ids(client, generate("c", 6, max_tokens=2))
        finally:
            await client.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(life()) == [6, 6]


def test_no_torch_is_imported_when_the_package_is() -> None:
    """The gateway does not pay for torch by importing the client."""
    check = "import sys, prefix_layer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_settings_survive_when_passed_on_the_command_line(tmp_path: Path) -> None:
    """The engine process is built from the very settings that the client was given."""
    config = EngineConfig(tmp_path / "a b", dtype="float32", kv_tokens=77, prefix_caching=False)
    assert decode_config(encode_config(config)) == config


async def test_close_ends_when_a_dying_engine_swallows_the_cancellation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever became of the cancellation, a closed client starts nothing anew."""
    client = EngineClient(EngineConfig(tmp_path), program=PROGRAM, backoff_s=0.01)
    runs = 0

    async def run_once() -> _End:
        nonlocal runs
        runs += 1
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return _End("killed", loaded=True)

    monkeypatch.setattr(client, "_run_once", run_once)
    await client.start()
    while not runs:
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await client.close()
    assert runs == 1
