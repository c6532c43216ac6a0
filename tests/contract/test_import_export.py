"""Export and import: what comes back has the same keys and is served the same."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.contract.client import until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import Stack, command, environment, upstream_toml
from tests.contract.test_replay import REQUESTS, SCRIPTS, ending
from tests.fakes.upstream import Answer, FakeUpstream


def strata(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, "--url", stack.url),
        check=False,
        env=environment({}),
        cwd=stack.folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_entries_are_the_same_when_they_went_out_and_came_in_again(
    relay: Relay, relay_stack: Stack, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Every kind of answer, with documents, named queries, tags, spaces: same ids, same replies."""
    space = relay.http.headers["x-strata-namespace"]
    asked: list[dict[str, Any]] = []
    for name, pieces in SCRIPTS.items():
        upstream.script = lambda _, p=pieces: Answer([*p, *ending(system_fingerprint="fp")])
        strata_field = {"context": [name, "doc-1"], "query": f"About {name}?", "tags": [name[:4]]}
        request = relay.body(f"All about {name}.", **REQUESTS.get(name, {}), strata=strata_field)
        asked.append(request)
        assert relay.http.post("/v1/chat/completions", json=request).status_code == 200
    completion = {"model": "stub-model", "prompt": ["a", "b"], "logprobs": 1}
    parts = [
        b'data: {"choices":[{"index":%d,"text":"t","finish_reason":"stop","logprobs":'
        b'{"tokens":["t"],"token_logprobs":[-1.5],"top_logprobs":[null],"text_offset":[0]}}]}\n\n'
        % index
        for index in range(2)
    ]
    upstream.script = lambda _: Answer([*parts, b"data: [DONE]\n\n"])
    assert relay.http.post("/v1/completions", json=completion).status_code == 200
    until(lambda: len(relay.entries(namespace=space)) == len(SCRIPTS) + 1)
    before = {entry["id"]: entry for entry in relay.entries(namespace=space)}
    replies = [relay.http.post("/v1/chat/completions", json=request).json() for request in asked]
    file = tmp_path / "entries.jsonl"
    assert strata(relay_stack, "export", str(file), "--namespace", space).returncode == 0
    relay.http.delete("/admin/cache/entries", params={"namespace": space}).raise_for_status()
    assert relay.entries(namespace=space) == []
    done = strata(relay_stack, "import", str(file))
    assert done.returncode == 0, done.stderr
    after = {entry["id"]: entry for entry in relay.entries(namespace=space)}
    assert after.keys() == before.keys()
    for entry_id, entry in after.items():
        old = before[entry_id]
        for field in ("request", "tags", "intent", "text", "exact_only", "namespace", "tenant"):
            assert entry[field] == old[field]
        assert 0 <= entry["expires_at"] - old["expires_at"] < 30
    num_calls = len(upstream.calls)
    for request, reply in zip(asked, replies, strict=True):
        again = relay.http.post("/v1/chat/completions", json=request)
        assert again.headers["x-strata-cache"] == "exact"
        same = [
            {k: v for k, v in b.items() if k not in {"id", "created"}}
            for b in (again.json(), reply)
        ]
        assert same[0] == same[1]
    hit = relay.http.post("/v1/completions", json=completion)
    assert hit.headers["x-strata-cache"] == "exact"
    assert len(upstream.calls) == num_calls


def test_row_without_a_tenant_is_refused_when_the_gateway_has_keys(
    start_stack: StartStack, upstream: FakeUpstream, tmp_path: Path
) -> None:
    """Nobody's key could ever reach it; a row that says whose it is goes in."""
    keys = tmp_path / "keys.toml"
    made = subprocess.run(
        command("keys", "add", "alice", "--file", str(keys)), capture_output=True, check=True
    )
    assert made.returncode == 0
    stack = start_stack(
        toml=upstream_toml(upstream.base_url),
        LOCAL__MODEL="none",
        SEMANTIC__ENABLED="off",
        API_KEYS_FILE=str(keys),
    )
    relay = Relay(stack.url)
    row = {"request": relay.body("Hi"), "text": "Hello."}
    odd = {**row, "tenant": "alice", "intent": "no-such"}
    rows = [row, {**row, "tenant": "alice"}, odd]
    result = relay.http.post("/admin/cache/entries", json=rows).json()
    assert result["imported"] == 1
    assert [(error["index"], error["param"]) for error in result["errors"]] == [
        (0, "tenant"),
        (2, "intent"),
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))
    refused = strata(stack, "import", str(file))
    assert refused.returncode == 1
    assert "tenant" in refused.stderr
    relay.close()
