"""Backup and restore between gateways that are not alike: keys, embedders, experiments, records."""

import base64
import gzip
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from gateway.answer import Answer as Stored
from gateway.answer import Choice, encode
from gateway.backends.base import Usage
from gateway.wire.backup import FORMAT, EntryLine, Header, Writing
from semantic_layer import Entry
from tests.contract.client import until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, command, environment, upstream_toml
from tests.contract.test_backup import KEY, strata
from tests.fakes.upstream import Answer, Call, FakeUpstream, echo, vectors

SECRET = "The vault of Ghent opens at 7:41."
ASKED, EQUAL = "When does the vault of Ghent open?", "when does the vault of ghent open"
DIMENSIONS = 26
NUM_ENTRIES = 20_000
ANSWER_CHARS = 3_000
MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
MOST_COMMAND_BYTES = 300 << 20  # with the interpreter and what it imports
MOST_GROWTH_BYTES = 60 << 20  # of the gateway; the backup has some 90 MB


def new_key() -> str:
    return base64.b64encode(uuid.uuid4().bytes * 2).decode()


def letters(call: Call) -> Answer:
    """Embed a text as its letters; repeat what is asked."""
    if not call.path.endswith("/embeddings"):
        return echo(call)
    rows = [
        [ord(letter) - 97 for letter in text.lower() if "a" <= letter <= "z"]
        for text in call.body["input"]
    ]
    counts = [np.bincount(row, minlength=DIMENSIONS) + 0.01 for row in rows]
    return vectors([[float(n) for n in count] for count in counts])


def on_disk(stack: Stack) -> bytes:
    """All bytes that a stopped gateway left in its data folder."""
    files = [path for path in (stack.folder / "data").rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files)


def test_all_is_there_when_another_key_and_another_embedder_restore_it(
    start_stack: StartStack, tmp_path: Path, clients: Callable[..., Relay]
) -> None:
    """Sealed anew, embedded anew, with experiments and, where asked for, recorded requests."""
    with FakeUpstream(letters) as upstream:
        toml = upstream_toml(upstream.base_url)
        usual = {"LOCAL__MODEL": "none", "ADMIN_KEY": KEY}
        old = start_stack(toml=toml, CACHE__ENCRYPTION_KEY=new_key(), **usual)
        new = start_stack(
            toml=toml,
            CACHE__ENCRYPTION_KEY=new_key(),
            EMBEDDER__MODEL="upstream:stub/embed-1",
            **usual,
        )
        one, two = (clients(stack, Relay, x_strata_admin_key=KEY) for stack in (old, new))
        one.seed(ASKED)
        one.seed(SECRET)
        plan = {"intent": "factual", "a": 1.0, "b": 0.97}
        assert one.http.post("/admin/experiments", json=plan).status_code in (200, 201)
        until(lambda: len(one.http.get("/admin/requests").json()["requests"]) >= 2)
        plain, whole = tmp_path / "plain.jsonl.gz", tmp_path / "whole.jsonl.gz"
        assert strata(old, "backup", str(plain)).returncode == 0
        assert strata(old, "backup", "--requests", str(whole)).returncode == 0
        assert b'"requests"' not in gzip.decompress(plain.read_bytes())
        done = strata(new, "restore", str(whole), "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["entries"] == 2

        num_calls = len([call for call in upstream.calls if not call.path.endswith("/embeddings")])
        assert two.answer(ASKED).headers["x-strata-cache"] == "exact"
        found = two.lookup(two.body(EQUAL))
        assert found["candidates"][0]["similarity"] == pytest.approx(1, abs=1e-3)
        after = [call for call in upstream.calls if not call.path.endswith("/embeddings")]
        assert len(after) == num_calls
        here, there = (
            caller.http.get("/admin/experiments").json()["experiments"] for caller in (one, two)
        )
        assert [each["id"] for each in there] == [each["id"] for each in here]
        asked = {each["id"] for each in one.http.get("/admin/requests").json()["requests"]}
        kept = {each["id"] for each in two.http.get("/admin/requests").json()["requests"]}
        assert asked <= kept
        for stack in (old, new):
            stack.interrupt()
            assert SECRET.encode() not in on_disk(stack)


def entry(at: int) -> Entry:
    text = f"{at} {uuid.uuid4().hex} " * (ANSWER_CHARS // 40)
    answer = Stored([Choice(0, "stop", text)], Usage(5, 5, 0))
    return Entry(
        f"{at:064x}", "public", "", "m", "f", encode(answer), 1e9, 4e9, answer_text=text[:100]
    )


@pytest.mark.slow
def test_memory_stays_flat_when_twenty_thousand_entries_come_and_go(
    start_stack: StartStack, tmp_path: Path
) -> None:
    """Neither the gateway nor the command holds a backup whole."""
    file, back = tmp_path / "all.jsonl", tmp_path / "back.jsonl"
    writing = Writing()
    with file.open("wb") as out:
        out.write(writing.line(Header(FORMAT, "1", 1.0)))
        out.writelines(writing.line(EntryLine(entry(at))) for at in range(NUM_ENTRIES))
        out.write(writing.end())
    stack = start_stack(
        LOCAL__MODEL="none", SEMANTIC__ENABLED="false", ADMIN_KEY=KEY, REQUESTS__KEPT="0"
    )
    gateway = psutil.Process(stack.pid)
    for name, path in (("restore", file), ("backup", back)):
        before = peak_bytes(gateway)
        assert peak_of_command(stack, name, str(path)) < MOST_COMMAND_BYTES, name
        assert peak_bytes(gateway, anew=False) - before < MOST_GROWTH_BYTES, name
    lines = [sorted(path.read_bytes().splitlines()[1:-1]) for path in (file, back)]
    assert lines[0] == lines[1]
    assert file.stat().st_size > MOST_GROWTH_BYTES


def peak_of_command(stack: Stack, *arguments: str) -> int:
    """Run a command that must succeed; return the most memory that it held."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command(*arguments, "--url", stack.url)],
        check=False,
        env=environment({"STRATA_ADMIN_KEY": KEY}),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout) << 10


def peak_bytes(process: psutil.Process, *, anew: bool = True) -> int:
    """The most memory a process held since this was last asked ``anew``."""
    if anew:
        Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) << 10
