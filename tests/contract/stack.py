"""A real ``strata serve`` process with its own data folder, and a client to talk to it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

ROOT = Path(__file__).parents[2]
CHAT_MODEL = "smollm2-135m-instruct"
READY_S = 120
STOP_S = 5


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(met: Callable[[], Any], *, limit_s: float = 30, what: str = "") -> Any:
    """Ask again and again until the answer is true; return it."""
    deadline = time.monotonic() + limit_s
    while not (answer := met()):
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what or met}"
        time.sleep(0.05)
    return answer


def command(*arguments: str) -> list[str]:
    """Return the command line of ``strata``."""
    script = Path(sys.executable).parent / "strata"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "gateway.cli"]
    return [*start, *arguments]


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with the given settings as its only ``STRATA_*``."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
    return {**plain, **settings, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}


@dataclass(frozen=True)
class Stream:
    """One streamed answer, read to its end."""

    status: int
    headers: httpx.Headers
    chunks: list[dict[str, Any]]
    is_done: bool

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", [])]

    @property
    def text(self) -> str:
        return "".join(delta.get("content") or "" for delta in self.deltas)

    @property
    def finish_reasons(self) -> list[str | None]:
        return [
            choice["finish_reason"] for chunk in self.chunks for choice in chunk.get("choices", [])
        ]

    @property
    def usages(self) -> list[dict[str, Any]]:
        return [chunk["usage"] for chunk in self.chunks if chunk.get("usage") is not None]

    @property
    def cache(self) -> str:
        return self.headers["x-strata-cache"]


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as its standard has it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def parse_stream(status: int, headers: httpx.Headers, body: bytes) -> Stream:
    """Read an event stream; every event must be one ``data:`` line, ``[DONE]`` the last."""
    assert headers["content-type"].split(";")[0] == "text/event-stream", body
    assert body.endswith(b"\n\n"), body[-80:]
    events = body.decode().removesuffix("\n\n").split("\n\n")
    texts = [event.removeprefix("data: ") for event in events if not event.startswith(":")]
    assert all(event.startswith(("data: ", ":")) and "\n" not in event for event in events), events
    is_done = texts[-1] == "[DONE]"
    assert texts.count("[DONE]") == int(is_done)
    chunks = [strict_json(text) for text in (texts[:-1] if is_done else texts)]
    return Stream(status, headers, chunks, is_done)


class Client:
    """Speaks to one gateway as one caller."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, tenant: str | None = None
    ) -> None:
        self.url = url
        self.tenant = tenant
        self.http = httpx.Client(
            base_url=url, headers=dict(headers or {}), timeout=120, trust_env=False
        )

    def body(self, prompt: str | Sequence[Any], **fields: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return {
            "model": CHAT_MODEL,
            "temperature": 0,
            "max_tokens": 24,
            "messages": messages,
            **fields,
        }

    def chat(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask for a whole answer; whatever status comes."""
        return self.http.post(
            "/v1/chat/completions", json=self.body(prompt, **fields), headers=dict(headers or {})
        )

    def answer(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask for a whole answer, which must come and, if it may, be in the cache afterwards."""
        response = self.chat(prompt, headers=headers, **fields)
        assert response.status_code == 200, response.text
        strict_json(response.text)
        return response

    def seed(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask, and wait until the answer is found in the cache."""
        response = self.answer(prompt, headers=headers, **fields)
        request = self.body(prompt, **fields)
        until(lambda: self.lookup(request, headers)["outcome"] == "exact", what="stored")
        return response

    def stream(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Stream:
        """Ask for a stream and read all of it."""
        response = self.chat(prompt, headers=headers, stream=True, **fields)
        return parse_stream(response.status_code, response.headers, response.content)

    def opened(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        """Ask for a stream to be read piece by piece; a context manager."""
        body = self.body(prompt, stream=True, **fields)
        return self.http.stream(
            "POST", "/v1/chat/completions", json=body, headers=dict(headers or {})
        )

    def lookup(
        self, request: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Dry-run the caches as this caller."""
        sent = {**dict(self.http.headers), **dict(headers or {})}
        relevant = {name: value for name, value in sent.items() if name.startswith("x-strata-")}
        more = {"tenant": self.tenant} if self.tenant else {}
        response = self.http.post(
            "/admin/cache/lookup", json={"request": request, "headers": relevant, **more}
        )
        assert response.status_code == 200, response.text
        return dict(response.json())

    def entries(self, **query: Any) -> list[dict[str, Any]]:
        """Return the stored entries that fit."""
        response = self.http.get("/admin/cache/entries", params=query)
        assert response.status_code == 200, response.text
        return list(response.json()["entries"])

    def metrics(self) -> str:
        response = self.http.get("/metrics")
        assert response.status_code == 200
        return response.text

    def close(self) -> None:
        self.http.close()


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


def upstream_toml(base_url: str, *, models: Sequence[str] = ("stub-model",), more: str = "") -> str:
    """Return the settings of one upstream."""
    return (
        f'[[upstreams]]\nname = "stub"\nbase_url = "{base_url}"\n'
        f"models = {json.dumps(list(models))}\n{more}\n"
    )
