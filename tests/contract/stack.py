"""A real ``strata serve`` process with its own data folder."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from tests.contract.client import Client, until
from tests.fakes.upstream import FakeUpstream, Script

ROOT = Path(__file__).parents[2]
READY_S = 120
STOP_S = 5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def command(*arguments: str) -> list[str]:
    """Return the command line of ``strata``."""
    script = Path(sys.executable).parent / "strata"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "gateway.cli"]
    return [*start, *arguments]


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the given settings as its only ``STRATA_*``."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
    return {**plain, **settings, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


class Stack:
    """One gateway: its folder, its settings, and the process while it runs."""

    def __init__(self, folder: Path, models_dir: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.settings = {
            "STRATA_PORT": str(self.port),
            "STRATA_DATA_DIR": str(folder / "data"),
            "STRATA_MODELS_DIR": str(models_dir),
            **settings,
        }
        self.client = Client(self.url)
        self._process: subprocess.Popen[bytes] | None = None
        self._family: dict[int, psutil.Process] = {}

    @property
    def log(self) -> str:
        return (self.folder / "serve.log").read_text(encoding="utf-8", errors="replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        with (self.folder / "serve.log").open("ab") as log:
            self._process = subprocess.Popen(
                command("serve"),
                cwd=self.folder,
                env=environment(self.settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until(self._is_ready, limit_s=READY_S, what="ready")
        self.children()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log[-3000:]
        try:
            health = httpx.get(f"{self.url}/health/ready", timeout=10, trust_env=False)
        except httpx.TransportError:
            return False
        return health.status_code == 200 and all(
            part["state"] != "starting" for part in health.json().values() if isinstance(part, dict)
        )

    def children(self) -> list[psutil.Process]:
        """Return every descendant process that runs now."""
        found = psutil.Process(self.pid).children(recursive=True)
        self._family |= {process.pid: process for process in found}
        return found

    def child(self, word: str) -> psutil.Process:
        """Return the descendant whose command line has this word."""
        return next(process for process in self.children() if word in " ".join(process.cmdline()))

    def interrupt(self) -> None:
        """Press Ctrl-C; everything must be gone in time."""
        assert self._process is not None
        self.children()
        self._process.send_signal(signal.SIGINT)
        self._process.wait(STOP_S)
        self.assert_gone()

    def kill(self) -> None:
        """Kill the gateway alone, without a word; its children must follow by themselves."""
        assert self._process is not None
        self.children()
        self._process.kill()
        self._process.wait(10)
        self.assert_gone()

    def restart(self) -> None:
        self.interrupt()
        self.start()

    def assert_gone(self) -> None:
        """Assert that no process that was ever ours is left."""
        until(lambda: not self._left(), limit_s=STOP_S, what=f"processes gone: {self._left()}")

    def _left(self) -> list[str]:
        return [
            f"{process.pid} {process.name()}"
            for process in self._family.values()
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        ]

    def close(self) -> None:
        """Stop what runs; a process that has to be forced is a failure."""
        self.client.close()
        if self._process is None or self._process.poll() is not None:
            self.assert_gone()
            return
        try:
            self.interrupt()
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(10)


@contextmanager
def serving(folder: Path, models_dir: Path, **settings: str) -> Iterator[Stack]:
    """Run a gateway; settings are named without ``STRATA_``, ``toml`` is its settings file."""
    toml = settings.pop("toml", "")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "strata.toml").write_text(toml, encoding="utf-8")
    named = {f"STRATA_{key}": value for key, value in settings.items()}
    stack = Stack(folder, models_dir, named)
    try:
        stack.start()
        yield stack
    finally:
        stack.close()


@contextmanager
def relaying(
    folder: Path, models_dir: Path, script: Script, models: Sequence[str], **settings: str
) -> Iterator[Stack]:
    """Run a gateway without a local model in front of a scripted upstream, asked once each time."""
    with FakeUpstream(script, models=models) as fake:
        toml = upstream_toml(fake.base_url, models=models, more="retries = 0")
        own = {"LOCAL__MODEL": "none", **settings}
        with serving(folder, models_dir, toml=toml, **own) as started:
            yield started


def upstream_toml(base_url: str, *, models: Sequence[str] = ("stub-model",), more: str = "") -> str:
    """Return the settings of one upstream."""
    return (
        f'[[upstreams]]\nname = "stub"\nbase_url = "{base_url}"\n'
        f"models = {json.dumps(list(models))}\n{more}\n"
    )
