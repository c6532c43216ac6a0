"""Rules of tenants: in the file, on the command line, and over a request's own wishes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.auth import KeyRing
from gateway.cli import strata
from gateway.errors import Forbidden
from gateway.keys_file import KeysFileError, add_key, read_keys_file, revoke_key, set_rules
from gateway.rules import UNRESTRICTED, TenantRules
from semantic_layer import CacheControl


def test_rules_stay_when_keys_are_added_and_revoked(tmp_path: Path) -> None:
    """Every change of the file keeps what it does not change."""
    path = tmp_path / "keys.toml"
    set_rules(path, "acme", {"requests_per_minute": 5, "models": ["smol*", 'a"b']})
    set_rules(path, "*", {"cache": "read", "max_ttl_s": 60.5, "semantic": False})
    key_id, key = add_key(path, "acme")
    _, other = add_key(path, "other")
    ring = KeyRing(path)
    assert ring.tenant(f"Bearer {key}").rules == TenantRules(
        requests_per_minute=5, models=("smol*", 'a"b')
    )
    assert ring.tenant(f"Bearer {other}").rules.max_ttl_s == 60.5
    revoke_key(path, key_id)
    assert read_keys_file(path).rules_of("acme").requests_per_minute == 5
    assert [tenant.name for tenant in ring.tenants()] == ["acme", "other"]


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        ("[tenants.acme]\nrequest_per_minute = 5", "unknown rule request_per_minute; known"),
        ("[tenants.acme]\nrequests_per_minute = 0", "requests_per_minute.*>= 1"),
        ("[tenants.acme]\ncache = 'maybe'", "cache"),
        ("[tenants.acme]\nmodels = 'smol'", "models"),
        ("[tenants.'a b']\n", "a b"),
        ("[tenant.acme]\n", "unknown tenant"),
        ("tenants = 5", r"\[tenants.NAME\]"),
    ],
)
def test_rule_is_named_when_the_file_is_wrong(tmp_path: Path, rules: str, named: str) -> None:
    """A slip stops the start with its name; it never means no limit."""
    path = tmp_path / "keys.toml"
    path.write_text(rules)
    with pytest.raises(KeysFileError, match=named):
        KeyRing(path)


def test_wishes_only_get_stricter_when_rules_meet_them() -> None:
    """No rule switches a cache on that the request switched off."""
    asked = CacheControl(no_cache=True, semantic=False)
    assert TenantRules(max_ttl_s=5).restrict(asked) == CacheControl(
        no_cache=True, semantic=False, max_ttl_s=5
    )
    assert TenantRules(cache="off").restrict(CacheControl()) == CacheControl(
        no_cache=True, no_store=True
    )
    assert TenantRules(cache="read").restrict(CacheControl()) == CacheControl(no_store=True)
    assert UNRESTRICTED.restrict(asked) is asked


def test_namespace_is_the_first_when_none_is_asked_for() -> None:
    """A tenant kept to namespaces never works in the space of all."""
    rules = TenantRules(namespaces=("eu", "us"))
    assert (rules.namespace(""), rules.namespace("us")) == ("eu", "us")
    with pytest.raises(Forbidden, match="asia"):
        rules.namespace("asia")
    assert UNRESTRICTED.namespace("asia") == "asia"


def test_command_sets_and_clears_when_an_operator_asks(tmp_path: Path) -> None:
    """What the command prints is what the file says."""
    file = ("--file", str(tmp_path / "keys.toml"), "--json")

    def run(*arguments: str) -> object:
        done = CliRunner().invoke(strata, ["keys", *arguments, *file])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    run("limit", "acme", "--requests-per-minute", "5", "--model", "a", "--model", "b*")
    changed = run("limit", "acme", "--tokens-per-day", "9", "--clear", "requests-per-minute")
    assert changed == {"acme": {"tokens_per_day": 9, "models": ["a", "b*"]}}
    assert run("rules") == changed


def test_command_says_so_when_the_tenant_has_no_key(tmp_path: Path) -> None:
    """A name that was mistyped is seen; rules may still come before the key."""
    file = ("--file", str(tmp_path / "keys.toml"))
    limit = ["keys", "limit", "acme", "--tokens-per-day", "9", *file]
    assert "'acme' has no key" in CliRunner().invoke(strata, limit).stderr
    CliRunner().invoke(strata, ["keys", "add", "acme", *file])
    done = CliRunner().invoke(strata, limit)
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("acme",), "nothing to change"),
        (("acme", "--requests-per-minute", "-1"), "requests_per_minute"),
        (("acme", "--clear", "speed"), "unknown rule speed"),
        (("a b", "--max-concurrent", "2"), "a b"),
    ],
)
def test_command_fails_in_one_line_when_a_rule_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    """Bad input changes nothing."""
    path = tmp_path / "keys.toml"
    done = CliRunner().invoke(strata, ["keys", "limit", *arguments, "--file", str(path)])
    assert done.exit_code != 0
    assert named in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not path.exists()
