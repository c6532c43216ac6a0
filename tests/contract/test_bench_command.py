"""`strata bench` against a real gateway: which layer answered, and how fast."""

import json
import subprocess
from typing import Any

from tests.contract.conftest import StartStack
from tests.contract.stack import command, environment

QUICK = ("--requests", "3", "--repeats", "4", "--concurrency", "2", "--max-tokens", "4")


def benched(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("bench", "--url", url, *QUICK, *arguments),
        env=environment({}),
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_each_layer_is_timed_when_a_gateway_runs(start_stack: StartStack) -> None:
    """New questions miss and share their prompt, repeats are exact, nothing is lost or left out."""
    stack = start_stack()
    run = benched(stack.url, "--json")
    assert run.returncode == 0, run.stderr
    rows: list[dict[str, Any]] = json.loads(run.stdout)["rows"]
    told = {(row["asked"], row["outcome"]): row for row in rows}
    assert told["new", "miss"]["requests"] == 3
    assert told["new", "miss"]["cached_share"] > 0.5
    assert told["again", "exact"]["requests"] == 12
    assert told["in other words", "semantic"]["requests"] == 3
    assert sum(row["requests"] for row in rows) == 3 + 12 + 3
    assert all(0 < row["p50_ms"] <= row["p99_ms"] and row["per_s"] > 0 for row in rows)
    shown = benched(stack.url).stdout.splitlines()
    assert shown[0].split()[:3] == ["asked", "outcome", "requests"]


def test_one_line_says_why_when_it_cannot_be_run(start_stack: StartStack) -> None:
    """No gateway, and a model that is not served."""
    silent = benched("http://127.0.0.1:9")
    assert silent.returncode == 1
    assert "no gateway answers on http://127.0.0.1:9" in silent.stderr
    refused = benched(start_stack().url, "--model", "nobody")
    assert refused.returncode == 1
    assert "nobody" in refused.stderr
    assert "Traceback" not in refused.stderr
