"""Bad input at every command: one clear line, no traceback, and an exit code that says so."""

import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from gateway.cli import strata

NOBODY = "http://127.0.0.1:1"
ROWS = (["import"], ["warm"], ["warm", "--pin"], ["warm", "--unpin"], ["thresholds"])
READ = (*ROWS, ["thresholds", "--teach"], ["restore"], ["restore", "--check"], ["trace"])
LINT = (["lint"], ["lint", "--fix"])
BAD_FILES = ("missing", "folder", "empty", "binary", "text", "array", "broken.gz")
SETTINGS = ("missing", "folder", "binary", "text")
KEYS = (
    ["list"], ["rules"], ["add", "a"], ["revoke", "a"], ["limit", "a", "--tokens-per-day", "1"],
)  # fmt: skip


def commands(command: click.Command, *path: str) -> Iterator[list[str]]:
    """Give the path of every command."""
    if path:
        yield list(path)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, *path, name)


EVERY = list(commands(strata))
CASES = [
    *([*command, "--no-such-option"] for command in EVERY),
    *([*command, "--config", name] for command in EVERY for name in SETTINGS
      if command[0] not in {"keys", "trace"} and command != ["analyze", "memory"]),
    *([*command, name] for command in READ for name in BAD_FILES),
    *([*command, name] for command in LINT for name in ("missing", "folder", "empty")),
    *(["lint", name, "--model", "text"] for name in ("text", "empty")),
    *([command, name] for command in ("export", "backup") for name in ("folder", "missing/x")),
    *(["keys", *rest, "--file", name] for rest in KEYS for name in ("folder", "binary", "text")),
    *(["models", name, "--models-dir", "text"] for name in ("list", "prepare", "verify")),
    ["models", "verify", "--models-dir", "folder"],
    *(["analyze", "memory", name] for name in ("missing", "folder", "empty", "binary", "text")),
    *([command, *rest, "--url", NOBODY] for command, rest in {
        "doctor": [], "bench": [], "unpin": [], "thresholds": [], "export": ["x"], "backup": ["x"],
        "import": ["rows"], "warm": ["rows"],
    }.items()),
    *(["doctor", "--url", url] for url in ("nowhere", "ftp://x", "http://", "http://[")),
    *(["serve", "--port", port] for port in ("x", "-1", "70000")),
    *(["trace", "--simulate", "zipf", "--blocks", num] for num in ("x", "0", "-4")),
    *(["bench", "--requests", num] for num in ("x", "0")),
    *(["lint", "rows", "--kv-tokens", num] for num in ("x", "0", "-1")),
    *(["keys", "limit", "a", "--requests-per-minute", num] for num in ("x", "0")),
    ["--no-such-option"], ["no-such"], ["keys", "no-such"], ["models", "no-such"], ["trace"],
    ["trace", "--simulate", "no-such"], ["lint", "rows", "--format", "no-such"], ["lint"],
    ["thresholds", "rows", "--budget", "2"], ["thresholds", "--budget", "0.1"], ["keys", "add"],
    ["keys", "limit", "a"], ["keys", "revoke", "nobody"], ["doctor", "a", "b"],
    ["analyze", "memory", "--codec", "no-such"],
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "folder").mkdir()
    for name, content in {
        "empty": b"",
        "binary": bytes(range(256)) * 8,
        "text": b"no rows\nat all\n",
        "array": b"[1, 2]\n",
        "broken.gz": b"\x1f\x8b\x08\x00broken",
        "rows": b'{"messages": [{"role": "user", "content": "Hi"}]}\n',
    }.items():
        (made / name).write_bytes(content)
    return made


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_bad_input_is_one_line_at_any_command(
    monkeypatch: pytest.MonkeyPatch, folder: Path, models_dir: Path, arguments: list[str]
) -> None:
    """It begins with ``Error:``; standard output stays empty, and no file is left."""
    for name in [name for name in os.environ if name.startswith("STRATA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STRATA_MODELS_DIR", str(models_dir))
    monkeypatch.chdir(folder)
    before = sorted(folder.iterdir())
    result = CliRunner().invoke(strata, arguments)
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert len(line) < 400
    assert sorted(folder.iterdir()) == before
