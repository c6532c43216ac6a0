"""Node's clients behind the same face, each operation a process of its own."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.face import Call

FOLDER = Path(__file__).parent / "node"
CACHE = Path(__file__).parents[2] / ".venv" / "npm-cache"
INSTALL_S, RUN_S = 240, 90


def install() -> None:
    """Install the pinned packages once; without npm, or packages to be had, say so."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    lock = FOLDER / "package-lock.json"
    done = FOLDER / "node_modules" / ".installed"
    if done.exists() and done.read_text() == lock.read_text():
        return
    subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--cache", str(CACHE)],
        cwd=FOLDER,
        check=True,
        capture_output=True,
        timeout=INSTALL_S,
    )
    done.write_text(lock.read_text())


class NodeClient:
    """One of the scripts beside this file."""

    def __init__(self, script: str, url: str) -> None:
        install()
        self._script = script
        self._url = url

    def _run(self, operation: str, model: str, text: str) -> dict[str, Any]:
        job = {"url": self._url, "model": model, "text": text, "operation": operation}
        done = subprocess.run(
            ["node", self._script, json.dumps(job)],
            cwd=FOLDER,
            check=False,
            capture_output=True,
            text=True,
            timeout=RUN_S,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return dict(json.loads(done.stdout))

    def ask(self, model: str, text: str) -> str:
        return str(self._run("ask", model, text)["value"])

    def stream(self, model: str, text: str) -> list[str]:
        return list(self._run("stream", model, text)["value"])

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        (name, arguments), answer = self._run("call_tool", model, text)["value"]
        return (name, arguments), answer

    def structured(self, model: str, text: str) -> dict[str, Any]:
        return dict(self._run("structured", model, text)["value"])

    def error(self, model: str, text: str) -> tuple[int, str]:
        status, message = self._run("ask", model, text)["error"]
        return status, message

    def leave(self, model: str, text: str) -> str:
        return str(self._run("leave", model, text)["value"])

    def close(self) -> None:
        """Each process ended by itself."""
