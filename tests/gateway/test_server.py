"""The server runner: a real process with a small app, real sockets and real signals."""

import http.client
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from gateway.address import CannotListen, free_port, url_of
from gateway.closing_time import OVERDUE
from gateway.server import BACKLOG

SCRIPT = """
import asyncio, gc, sys
from contextlib import asynccontextmanager
from litestar import Litestar, get
from litestar.response import Stream
from gateway.address import free_port
from gateway.server import run

async def count(last):
    try:
        for number in range(last):
            yield f"{number}\\n"
            await asyncio.sleep(0.05)
        yield "end"
    except BaseException:
        print("cut", flush=True)
        raise

@get("/count/{last:int}")
async def counting(last: int) -> Stream:
    return Stream(count(last))

@get("/spared")
async def spared() -> int:
    return gc.get_freeze_count()

@get("/")
async def hello() -> str:
    return "hello"

@asynccontextmanager
async def parts(app):
    if sys.argv[1] == "broken":
        raise OSError("a part is broken")
    if sys.argv[1] == "slow":
        print("opening", flush=True)
        await asyncio.sleep(60)
    yield
    if sys.argv[1] == "stuck":
        await asyncio.Event().wait()
    print("closed", flush=True)

app = Litestar([hello, spared, counting], lifespan=[parts])
drain_s = 0.5 if sys.argv[1] == "hasty" else 60.0
port = free_port("127.0.0.1", 0)
closing_s = 0.5 if sys.argv[1] == "stuck" else 60.0
say = lambda url: print(url, flush=True)
run(app, "127.0.0.1", port, say, drain_s=drain_s, closing_s=closing_s)
print("returned", flush=True)
"""


@contextmanager
def served(kind: str = "usual") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves; gives it and the first line it prints."""
    command = [sys.executable, "-c", SCRIPT, kind]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def connected(url: str) -> closing[http.client.HTTPConnection]:
    return closing(http.client.HTTPConnection("127.0.0.1", port_of(url)))


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_parts_are_closed_and_the_process_ends_well_when_a_stop_signal_comes() -> None:
    """Both stop signals lead through the lifespan's closing to exit code 0."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with served() as (process, url), connected(url) as connection:
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"hello"
            process.send_signal(number)  # the connection above stays open and idle
            out, _ = process.communicate(timeout=20)
            assert out.split() == ["closed", "returned"]
            assert process.returncode == 0


def test_process_ends_and_says_why_when_a_part_does_not_close() -> None:
    """A part that waits forever holds the process up for a limited time; the log tells where."""
    with served("stuck") as (process, _):
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
        assert out == ""
        assert process.returncode == OVERDUE
        assert "not closed after 0.5 s" in said
        assert "Thread" in said


def test_collector_passes_opened_parts_by_when_the_server_is_ready() -> None:
    """No request waits while what lives as long as the process is looked through for garbage."""
    with served() as (_, url), connected(url) as connection:
        connection.request("GET", "/spared")
        assert int(connection.getresponse().read()) > 10_000


def test_new_client_is_answered_when_more_than_a_thousand_connections_idle() -> None:
    """Who holds connections open and says nothing keeps nobody else out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2 * BACKLOG:
        pytest.skip("this system grants too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * BACKLOG), hard))
    with served() as (_, url), ExitStack() as idle:
        for _ in range(BACKLOG + 100):
            idle.enter_context(socket.create_connection(("127.0.0.1", port_of(url)), timeout=30))
        with closing(http.client.HTTPConnection("127.0.0.1", port_of(url), timeout=30)) as other:
            other.request("GET", "/")
            assert other.getresponse().read() == b"hello"


def test_a_short_answer_is_finished_when_a_stop_signal_comes_meanwhile() -> None:
    """Draining lets what is in flight end."""
    with served() as (process, url), connected(url) as connection:
        connection.request("GET", "/count/10")
        response = connection.getresponse()
        process.send_signal(signal.SIGINT)
        assert response.read().endswith(b"end")
        out, _ = process.communicate(timeout=20)
        assert out.split() == ["closed", "returned"]


def test_an_endless_answer_is_cut_when_the_drain_time_is_over() -> None:
    """A client that waits for ever cannot keep the process alive."""
    with served("hasty") as (process, url), connected(url) as connection:
        connection.request("GET", "/count/100000")
        response = connection.getresponse()
        process.send_signal(signal.SIGTERM)
        with pytest.raises(http.client.IncompleteRead):
            response.read()
        out, err = process.communicate(timeout=20)
        assert out.split() == ["cut", "closed", "returned"], "requests end before parts close"
        assert "Traceback" not in err


def test_answers_are_cut_at_once_when_a_second_stop_signal_comes() -> None:
    """An impatient user need not wait for the drain time."""
    with served() as (process, url), connected(url) as connection:
        connection.request("GET", "/count/100000")
        connection.getresponse().read(1)
        process.send_signal(signal.SIGINT)
        while _serves(url):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert out.split() == ["cut", "closed", "returned"]


def test_the_start_is_given_up_when_a_stop_signal_comes_before_it_is_ready() -> None:
    """Opening parts is cancelled, not waited for."""
    with served("slow") as (process, line):
        assert line == "opening"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert "StartInterrupted" in err
        assert "closed" not in out


def test_the_reason_is_raised_when_a_part_cannot_be_opened() -> None:
    """What the lifespan raises comes out of run, not a log line of the server."""
    with served("broken") as (process, _):
        _, err = process.communicate(timeout=20)
        assert err.rstrip().endswith("OSError: a part is broken")
        assert process.returncode != 0


def test_a_taken_port_is_refused_when_its_owner_shares_it() -> None:
    """Another gateway listens with SO_REUSEPORT, which a plain bind to share would not notice."""
    with socket.socket() as owner:
        owner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}"):
            free_port("127.0.0.1", port)


def test_a_host_of_another_machine_is_refused_when_asked_to_listen_there() -> None:
    """The line names the address, whatever the reason of the system."""
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1:8000"):
        free_port("192.0.2.1", 8000)
    with pytest.raises(CannotListen, match="no such host"):
        free_port("no such host", 8000)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("localhost", "http://localhost:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::1", "http://[::1]:8000"),
        ("::", "http://[::1]:8000"),
    ],
)
def test_the_url_can_be_used_from_this_machine_when_any_address_is_listened_on(
    host: str, url: str
) -> None:
    """Wildcard addresses become loopback ones, IPv6 gets its brackets."""
    assert url_of(host, 8000) == url


def _serves(url: str) -> bool:
    with connected(url) as connection:
        connection.request("GET", "/")
        return connection.getresponse().status == 200
