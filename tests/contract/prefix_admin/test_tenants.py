"""What tenants share of the prefix cache and what they never learn of one another."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.keys_file import add_key
from tests.contract.prefix_admin.desk import RULES, Desk, system

KEYS = {name: f"sk-{name}-0123456789abcdef" for name in ("alice", "bob", "carol")}


@pytest.fixture(scope="module")
def shared(serve: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A gateway with two tenants."""
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    for name, key in KEYS.items():
        add_key(path, name, key)
    with serve(API_KEYS_FILE=str(path), ADMIN_KEY="boss") as stack:
        stack.client.http.headers["x-strata-admin-key"] = "boss"
        stack.client.http.headers["authorization"] = f"Bearer {KEYS['alice']}"
        yield Desk(stack)


def test_other_tenant_is_named_without_its_text_when_it_has_the_prompt(shared: Desk) -> None:
    """A tenant neither hits nor is told what another one asked; the operator learns the cause."""
    secret = f"The launch code is 8417. {RULES}"
    shared.ask(system(secret), "Hi", key=KEYS["alice"])
    before = shared.computed()
    usage = shared.ask(system(secret), "Hi", key=KEYS["bob"], max_tokens=1)["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == 0
    assert shared.computed() - before == usage["prompt_tokens"]
    shared.reset()
    shared.ask(system(secret), "Hi", key=KEYS["alice"])
    seen = shared.explain(system(secret), "Hello", tenant="carol")
    assert seen["cause"] == "other_tenant"
    assert seen["first_divergence"]["text_cached"] is None
    assert "alice" not in json.dumps(seen)
    assert shared.explain(system(secret), "Hi", tenant="alice")["cause"] == "none"


def test_public_prompt_is_shared_by_all_tenants_when_warmed_so(shared: Desk) -> None:
    """What the operator makes public every tenant reuses; what they add stays theirs."""
    shared.reset()
    text = f"Public house rules. {RULES}"
    (row,) = shared.warm(shared.body(system(text), "Hi"), public=True, pin=True)["results"]
    assert row["computed_tokens"] == row["prompt_tokens"]
    assert row["pinned"]
    assert shared.cached(system(text), "My own words", key=KEYS["alice"]) > 48
    assert shared.cached(system(text), "My own words", key=KEYS["bob"]) < row["prompt_tokens"]
    tenants = {node["tenant"] for node in shared.tree()["prefixes"]}
    assert "(shared)" in tenants
    assert tenants == {"(shared)", "alice", "bob"}
    shared.reset()
