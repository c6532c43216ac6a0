"""``strata warm`` against a scripted admin API."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import strata
from tests.fakes.admin import FakeAdminApi, serving

KEY = "an admin key"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def api() -> Iterator[FakeAdminApi]:
    with serving(FakeAdminApi(admin_key=KEY)) as api:
        yield api


def run(api: FakeAdminApi, *arguments: str, stdin: bytes = b"", key: str = KEY) -> Result:
    environ = {"STRATA_ADMIN_KEY": key}
    command = ["warm", "-", *arguments, "--url", api.url]
    return CliRunner().invoke(strata, command, input=stdin, env=environ)


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_all_prompts_are_sent_when_the_file_has_many(api: FakeAdminApi, tmp_path: Path) -> None:
    """Requests come plain or wrapped; batches stay small, so that progress moves."""
    rows = [CHAT, {"request": CHAT}] * 10
    (tmp_path / "rows.jsonl").write_bytes(lines(*rows))
    environ = {"STRATA_ADMIN_KEY": KEY}
    command = ["warm", str(tmp_path / "rows.jsonl"), "--json", "--url", api.url]
    result = CliRunner().invoke(strata, command, env=environ)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {
        "warmed": 20,
        "tokens": {"computed": 140, "cached": 60},
        "bad": [],
    }
    assert [len(body["requests"]) for body in api.warmed] == [8, 8, 4]
    assert all(request == CHAT for body in api.warmed for request in body["requests"])


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ([], {}),
        (["--pin"], {"pin": True}),
        (["--unpin"], {"pin": False}),
        (["--public", "--pin"], {"public": True, "pin": True}),
        (["--tenant", "acme"], {"tenant": "acme"}),
    ],
)
def test_options_are_sent_when_given(
    api: FakeAdminApi, options: list[str], how: dict[str, Any]
) -> None:
    """Each option is a field of the admin API; what is not given is not sent."""
    done = run(api, *options, stdin=lines(CHAT))
    assert done.exit_code == 0
    assert done.stderr.startswith(
        {None: "warmed 1", True: "warmed and", False: "unpinned"}[how.get("pin")]
    )
    (body,) = api.warmed
    assert {k: v for k, v in body.items() if k != "requests"} == how


def test_bad_lines_are_named_when_others_are_good(api: FakeAdminApi) -> None:
    """Every bad line is told with its number; the good ones are warmed all the same."""
    stdin = lines(CHAT) + b"{broken\n\n" + lines({"bad": 1}, CHAT, [1])
    result = run(api, "--json", stdin=stdin)
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["warmed"] == 2
    assert [row["line"] for row in told["bad"]] == [2, 4, 6]
    plain = run(api, stdin=stdin)
    assert "line 4: " in plain.stderr
    assert "warmed 2 prompts (14 tokens computed, 6 were cached), 3 bad" in plain.stderr


def test_one_line_says_why_when_the_gateway_refuses(api: FakeAdminApi) -> None:
    """A wrong key and a missing gateway are told in one line."""
    refused = run(api, stdin=lines(CHAT), key="wrong")
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert "admin key" in refused.stderr
    nobody = CliRunner().invoke(
        strata, ["warm", "-", "--url", "http://127.0.0.1:1"], input=lines(CHAT)
    )
    assert nobody.exit_code == 1
    assert "strata serve" in nobody.stderr
