"""The server of our own: who starts, who dies with whom, what is kept."""

import asyncio
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis

from semantic_layer.errors import ServerFailed, ServerNotFound, StoreLocked
from semantic_layer.stores import valkey as valkey_module
from semantic_layer.stores.valkey import Valkey, find_server

PARENT = """
import asyncio, sys
from pathlib import Path
from semantic_layer.stores.valkey import Valkey

async def main():
    server = await Valkey.start(Path(sys.argv[1]))
    reader, writer = await asyncio.open_unix_connection(server.url.removeprefix("unix://"))
    writer.write(b"SET k v\\r\\n")
    await reader.readline()
    print(server.pid, flush=True)
    await asyncio.sleep(60)

if sys.argv[2] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""


def wait_dead(pid: int, timeout_s: float = 20.0) -> None:
    """Return when the process, not our child, is gone."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], timeout_s)[0], f"process {pid} lives"
    finally:
        os.close(fd)


async def command(server: Valkey, *words: str) -> object:
    client = Redis.from_url(server.url, decode_responses=True)
    try:
        return await client.execute_command(*words)
    finally:
        await client.aclose()


def num_aside(folder: Path) -> int:
    return len(list(folder.glob("unreadable-*")))


async def restarted(server: Valkey, times: int) -> None:
    async with asyncio.timeout(20):
        while server.num_restarts < times or server.pid is None or not await answers(server):
            await asyncio.sleep(0.01)


async def answers(server: Valkey) -> bool:
    try:
        return await command(server, "PING") is True
    except OSError:
        return False
    except Exception as error:  # noqa: BLE001 - the client's own errors while it starts
        return "LOADING" in str(error) and False


async def test_server_keeps_its_data_when_started_again(tmp_path: Path) -> None:
    """A stop and a start in the same folder lose nothing, and the socket is private."""
    first = await Valkey.start(tmp_path)
    await command(first, "SET", "k", "v")
    mode = stat.S_IMODE((tmp_path / "valkey.sock").stat().st_mode)
    assert mode == 0o700
    pid = first.pid
    await first.stop()
    assert pid is not None
    wait_dead(pid)
    second = await Valkey.start(tmp_path)
    assert await command(second, "GET", "k") == "v"
    assert await command(second, "CONFIG", "GET", "port") == {"port": "0"}
    await second.stop()


async def test_stopping_twice_does_no_harm(tmp_path: Path) -> None:
    """The lifespan may stop what is stopped."""
    server = await Valkey.start(tmp_path)
    await server.stop()
    await server.stop()
    assert server.pid is None


async def test_server_is_started_again_when_killed(tmp_path: Path) -> None:
    """Each time it dies it comes back with its data, under a new process id."""
    server = await Valkey.start(tmp_path)
    await command(server, "SET", "k", "v")
    for times in (1, 2):
        old = server.pid
        assert old is not None
        os.kill(old, signal.SIGKILL)
        await restarted(server, times)
        assert server.pid != old
        assert await command(server, "GET", "k") == "v"
    await server.stop()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_server_dies_when_its_parent_is_killed(tmp_path: Path, loop: str) -> None:
    """`kill -9` of the gateway leaves no server, and the next gateway starts with the data."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), loop], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server_pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    async def next_start() -> None:
        server = await Valkey.start(tmp_path)
        assert server.pid != server_pid
        assert await command(server, "GET", "k") == "v"
        await server.stop()

    asyncio.run(next_start())
    wait_dead(server_pid)


def test_next_gateway_is_refused_when_the_last_one_s_server_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder stays locked until the dead gateway's server is gone too."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), "asyncio"], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server_pid = int(parent.stdout.readline())
        os.kill(server_pid, signal.SIGSTOP)
        parent.send_signal(signal.SIGKILL)
    monkeypatch.setattr(valkey_module, "_HANDOVER_S", 0.05)
    try:
        with pytest.raises(StoreLocked):
            asyncio.run(Valkey.start(tmp_path))
    finally:
        os.kill(server_pid, signal.SIGCONT)
    wait_dead(server_pid)

    async def next_start() -> None:
        await (await Valkey.start(tmp_path)).stop()

    asyncio.run(next_start())


async def test_second_gateway_is_refused_when_the_folder_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the owner, and the first server goes on."""
    monkeypatch.setattr(valkey_module, "_HANDOVER_S", 0.05)
    server = await Valkey.start(tmp_path)
    with pytest.raises(StoreLocked, match=f"in use by process {os.getpid()}"):
        await Valkey.start(tmp_path)
    assert await command(server, "PING") is True
    await server.stop()


async def test_socket_is_reached_when_the_folder_has_a_long_name(tmp_path: Path) -> None:
    """A path longer than a socket address goes through a short link, removed at the stop."""
    folder = tmp_path / ("x" * 100) / "größe"
    server = await Valkey.start(folder)
    assert await command(server, "PING") is True
    assert (folder / "valkey.sock").is_socket()
    link = Path(server.url.removeprefix("unix://")).parent
    assert link.is_symlink()
    assert valkey_module._socket_path(folder).parent == link
    await server.stop()
    assert not link.parent.exists()


async def test_server_starts_when_a_dead_one_left_its_socket(tmp_path: Path) -> None:
    """A stale socket and a stale lock file are no owner."""
    (tmp_path / "lock").write_text("1")
    socket = tmp_path / "valkey.sock"
    socket.write_text("")
    server = await Valkey.start(tmp_path)
    assert await command(server, "PING") is True
    await server.stop()


async def test_server_starts_empty_when_its_file_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A cache does not stop the gateway: the broken file is kept aside and said so."""
    first = await Valkey.start(tmp_path)
    await command(first, "SET", "k", "v" * 100)
    await first.stop()
    (log,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"rubbish\r\n" + log.read_bytes())
    second = await Valkey.start(tmp_path)
    assert await command(second, "DBSIZE") == 0
    assert num_aside(tmp_path) == 1
    assert "append-only file moved" in caplog.text
    await second.stop()


async def test_start_names_the_log_when_the_server_fails(tmp_path: Path) -> None:
    """A program that ends at once is an error of one line, and the folder is free again."""
    with pytest.raises(ServerFailed, match=r"ended at once.*valkey\.log"):
        await Valkey.start(tmp_path, binary=Path("/bin/false"))
    server = await Valkey.start(tmp_path)
    await server.stop()


async def test_start_gives_up_when_the_server_stays_silent(tmp_path: Path) -> None:
    """A program that never answers is ended, and the folder is free again."""
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 600\n")
    silent.chmod(0o755)
    with pytest.raises(ServerFailed, match="silent"):
        await Valkey.start(tmp_path / "data", binary=silent, start_timeout_s=0.3)
    server = await Valkey.start(tmp_path / "data")
    await server.stop()


async def test_stop_kills_when_the_server_hangs(tmp_path: Path) -> None:
    """A stopped process cannot end in order; it is killed after the time given."""
    server = await Valkey.start(tmp_path)
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await server.stop(timeout_s=0.1)
    wait_dead(pid)


async def test_memory_is_bounded_when_a_bound_is_given(tmp_path: Path) -> None:
    """The bound reaches the server, and it refuses rather than evicts."""
    server = await Valkey.start(tmp_path, max_memory_bytes=7_000_000)
    assert await command(server, "CONFIG", "GET", "maxmemory*") == {
        "maxmemory": "7000000",
        "maxmemory-policy": "noeviction",
        "maxmemory-samples": "5",
        "maxmemory-eviction-tenacity": "10",
        "maxmemory-clients": "0",
    }
    await server.stop()


def test_server_on_the_path_is_found_when_none_is_packaged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a packaged binary the PATH is searched; without any, the error says what to do."""
    packaged = find_server()
    assert packaged.name == "valkey-server"
    monkeypatch.setattr("platform.machine", lambda: "sparc")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerNotFound, match="STRATA_REDIS__URL"):
        find_server()
    shutil.copy(packaged, tmp_path / "redis-server")
    assert find_server() == tmp_path / "redis-server"
