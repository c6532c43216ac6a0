"""Logs: one line per request, and nothing in it that is not the operator's business."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from gateway.auth import KeyRing
from gateway.keys_file import add_key
from gateway.setting_sections import LogSettings
from gateway.settings import Settings
from gateway.telemetry import configure_logging
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline

URL = "/v1/chat/completions"
SECRET = "my-very-secret-prompt"
BODY = {"model": "m", "messages": [{"role": "user", "content": SECRET}]}


Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def settings(**log: Any) -> Settings:
    chosen = LogSettings(**log)
    configure_logging(chosen)
    return Settings(log=chosen)


def lines(capsys: Output) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]


async def test_line_tells_the_request_when_it_has_ended(capsys: Output) -> None:
    """Id, route, status, outcome and time are there, once per request, unknown routes too."""
    gateway = MemoryGateway(FakeBackend(whole("x")), settings(format="json"))
    async with gateway.client() as client:
        for _ in range(2):
            await client.post(URL, json=BODY, headers={"x-request-id": "mine"})
        await client.post(URL, content=b"{", headers={"content-type": "application/json"})
        await client.get("/nothing")
    written = lines(capsys)
    said = [(line["route"], line["status"], line["outcome"]) for line in written]
    assert said == [
        (URL, 200, "miss"),
        (URL, 200, "exact"),
        (URL, 400, None),
        ("unknown", 404, None),
    ]
    first = written[0]
    assert first["request_id"] == "mine"
    assert first["event"] == "request"
    assert first["method"] == "POST"
    assert first["ms"] > 0
    assert first["timestamp"].endswith("Z")


async def test_logs_hold_no_prompt_and_no_key_when_all_goes_wrong(
    capsys: Output, tmp_path: Path
) -> None:
    """Good, refused and crashed requests leave no text, no answer and no key behind."""
    path = tmp_path / "keys.toml"
    _, key = add_key(path, "acme")
    gateway = MemoryGateway(FakeBackend(whole("an-answer")), settings(format="json", level="debug"))
    parts = {"key_ring": KeyRing(path)}
    headers = {"authorization": f"Bearer {key}", "x-api-key": key}
    async with gateway.client(**parts) as client:
        assert (await client.post(URL, json=BODY, headers=headers)).status_code == 200
        await client.post(URL, json={**BODY, "temperature": 9}, headers=headers)
        await client.post(URL, json=BODY, headers={"authorization": "Bearer wrong-key-of-someone"})
    crash = FakePipeline(error=RuntimeError("a bug"))
    async with gateway.client(pipeline=crash, **parts) as client:
        assert (await client.post(URL, json=BODY, headers=headers)).status_code == 500
    text = capsys.readouterr().out
    assert "a bug" in text  # the traceback is the operator's
    assert "Traceback" in text
    for secret in (SECRET, "an-answer", key, "wrong-key-of-someone"):
        assert secret not in text


async def test_nothing_is_said_when_the_level_is_higher(capsys: Output) -> None:
    """Requests are information; warnings alone do not include them."""
    gateway = MemoryGateway(FakeBackend(whole("x")), settings(format="json", level="warning"))
    async with gateway.client() as client:
        await client.post(URL, json=BODY)
    assert capsys.readouterr().out == ""


async def test_line_is_readable_when_the_format_is_console(capsys: Output) -> None:
    """People get one line of text."""
    gateway = MemoryGateway(FakeBackend(whole("x")), settings(format="console"))
    async with gateway.client() as client:
        await client.post(URL, json=BODY)
    (line,) = capsys.readouterr().out.splitlines()
    assert "outcome=miss" in line
    assert "status=200" in line


def test_library_logs_go_the_same_way_when_they_speak(capsys: Output) -> None:
    """Dependencies' warnings are lines of the same kind."""
    settings(format="json")
    logging.getLogger("some.library").warning("low on %s", "memory")
    (line,) = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == (
        "low on memory",
        "warning",
        "some.library",
    )
