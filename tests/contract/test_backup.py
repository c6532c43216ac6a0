"""Backup and restore: another gateway, begun empty, goes on where the first one was."""

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contract.client import until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, command, environment, upstream_toml
from tests.fakes.upstream import FakeUpstream

KEY = "a key of this test"
ASKED, REWORDED = "What is the capital of France?", "What's France's capital city?"
WRONG, WRONGLY = "How tall is Mount Everest?", "What's the height of Mount Everest?"


def strata(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, "--url", stack.url),
        check=False,
        env=environment({"STRATA_ADMIN_KEY": KEY}),
        cwd=stack.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def stored(relay: Relay) -> dict[str, dict[str, Any]]:
    """Return the entries by id; when an answer was shown is no part of it."""
    entries = relay.entries()
    for entry in entries:
        del entry["response"]["created"]
    return {entry["id"]: entry for entry in entries}


def refuse_bad_files(stack: Stack, relay: Relay, whole: bytes, folder: Path) -> None:
    """Assert that a cut and a changed file are refused by line, with nothing changed."""
    cut, changed = folder / "cut.jsonl", folder / "changed.jsonl"
    cut.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert b'"tags":["city"]' in whole
    changed.write_bytes(whole.replace(b'"tags":["city"]', b'"tags":["cite"]'))
    for bad, reason in ((cut, "cut off"), (changed, "sha256")):
        refused = strata(stack, "restore", str(bad))
        assert refused.returncode == 1
        assert "line " in refused.stderr
        assert reason in refused.stderr
    assert relay.entries() == []


def test_fresh_gateway_goes_on_where_the_first_was_when_a_backup_is_restored(
    start_stack: StartStack, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Hits, ages, ends, tags, policies, history, rejected pairs; bad files change nothing."""
    toml = upstream_toml(upstream.base_url)
    old, new = (start_stack(toml=toml, LOCAL__MODEL="none", ADMIN_KEY=KEY) for _ in range(2))
    one, two = (Relay(stack.url, {"x-strata-admin-key": KEY}) for stack in (old, new))
    one.seed(ASKED, headers={"x-strata-ttl": "5000", "x-strata-tags": "city"})
    one.seed(WRONG)
    until(lambda: one.lookup(one.body(WRONGLY))["outcome"] == "semantic")
    served = one.answer(WRONGLY).headers
    assert served["x-strata-cache"] == "semantic"
    about = {"request_id": served["x-request-id"], "verdict": "wrong"}
    until(lambda: one.http.post("/admin/feedback", json=about).status_code == 200)
    intent = one.lookup(one.body(ASKED))["intent"] or "factual"
    for budget in (0.02, 0.03):
        put = one.http.put(f"/admin/intents/{intent}", json={"budget": budget})
        assert put.status_code == 200, put.text
    before = stored(one)
    history = one.http.get(f"/admin/intents/{intent}/history").json()
    brought = [{**change, "version": 0} for change in history["changes"]]

    file = tmp_path / "all.jsonl.gz"
    done = strata(old, "backup", str(file))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o077 == 0
    refuse_bad_files(new, two, gzip.decompress(file.read_bytes()), tmp_path)
    for again in (False, True):
        done = strata(new, "restore", str(file), "--json")
        assert done.returncode == 0, done.stderr
        counts = json.loads(done.stdout)
        assert (counts["entries"], counts["expired"]) == (0 if again else len(before), 0)
        assert (counts["rows"] == 0) is again
        assert stored(two) == before
    assert two.http.get(f"/admin/intents/{intent}/history").json() == {"changes": brought}
    assert two.http.get(f"/admin/intents/{intent}").json()["policy"]["budget"] == pytest.approx(
        0.03
    )
    num_calls = len(upstream.calls)
    hit = two.answer(ASKED)
    assert hit.headers["x-strata-cache"] == "exact"
    assert int(hit.headers["age"]) >= 1
    assert two.answer(REWORDED).headers["x-strata-cache"] == "semantic"
    assert len(upstream.calls) == num_calls
    assert two.lookup(two.body(WRONGLY))["outcome"] == "miss"
    put = two.http.put(f"/admin/intents/{intent}", json={"budget": 0.04})
    assert put.status_code == 200
    after = two.http.get(f"/admin/intents/{intent}/history").json()["changes"]
    assert after[0]["after"]["budget"] == pytest.approx(0.04)
    assert after[1:] == brought
    one.close()
    two.close()
