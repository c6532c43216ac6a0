"""Keys, tenants, and what one of them can learn of another (field case F01)."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.client import Client
from tests.contract.conftest import Relay
from tests.contract.stack import Stack, command, environment, serving, upstream_toml
from tests.fakes.upstream import Answer, FakeUpstream, streamed

ASKED = "What is my order status? My order number is 5521."
REWORDED = "Please tell me the status of my order, number 5521."
ADMIN = "admin-key-for-the-tests"
SYSTEM = {"role": "system", "content": "Be brief and friendly in every reply. " * 20}

Clients = Callable[..., Client]


def new_key(file: Path, tenant: str) -> str:
    """Make a key as an operator does."""
    done = subprocess.run(
        command("keys", "add", tenant, "--file", str(file), "--json"),
        env=environment({}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return str(json.loads(done.stdout)["key"])


@pytest.fixture(scope="module")
def keyed(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path
) -> Iterator[tuple[Stack, dict[str, str], FakeUpstream]]:
    """A gateway with two tenants, a local model and an upstream."""
    folder = tmp_path_factory.mktemp("keyed")
    keys = {name: new_key(folder / "keys.toml", name) for name in ("alpha", "beta")}
    with (
        FakeUpstream() as fake,
        serving(
            folder,
            serving_models,
            toml=upstream_toml(fake.base_url),
            API_KEYS_FILE=str(folder / "keys.toml"),
            ADMIN_KEY=ADMIN,
        ) as stack,
    ):
        yield stack, keys, fake


class Known(Relay):
    """A caller with a key; its look-ups are the admin's, for its tenant."""

    def __init__(self, stack: Stack, tenant: str, key: str) -> None:
        super().__init__(stack.url, {"authorization": f"Bearer {key}"}, tenant=tenant)
        self.http.headers["x-strata-admin-key"] = ADMIN


@pytest.fixture
def callers(keyed: tuple[Stack, dict[str, str], FakeUpstream]) -> Iterator[dict[str, Known]]:
    stack, keys, _ = keyed
    made = {tenant: Known(stack, tenant, key) for tenant, key in keys.items()}
    yield made
    for caller in made.values():
        caller.close()


def test_answer_stays_with_its_tenant_whatever_another_sends(
    keyed: tuple[Stack, dict[str, str], FakeUpstream], callers: dict[str, Known]
) -> None:
    """Neither body nor headers reach another tenant's answer; its own repeat hits."""
    fake = keyed[2]
    fake.script = lambda call: Answer(streamed(["ALPHA-ONLY"]))
    alpha, beta = callers["alpha"], callers["beta"]
    long = "Some background that fills the page with words. " * 60
    alpha.seed(ASKED)
    alpha.seed(long + ASKED)
    assert alpha.answer(ASKED).headers["x-strata-cache"] == "exact"
    fake.script = lambda call: Answer(streamed(["for beta"]))
    attempts: list[tuple[dict[str, str], dict[str, object]]] = [
        ({}, {}),
        ({"x-strata-threshold": "0"}, {"user": "alpha"}),
        ({}, {"cache_key": "alpha", "namespace": "alpha", "tenant": "alpha"}),
        ({"x-strata-namespace": "alpha", "x-strata-tenant": "alpha"}, {}),
        ({}, {"strata": {"namespace": "alpha"}}),
        ({}, {"prompt_cache_key": "alpha"}),
    ]
    for headers, fields in attempts:
        for prompt in (ASKED, REWORDED, long + ASKED):
            sent = {"cache-control": "no-store"} | headers
            response = beta.answer(prompt, headers=sent, **fields)
            assert response.headers["x-strata-cache"] == "miss", (headers, fields, prompt)
            assert "ALPHA-ONLY" not in response.text


def test_prefix_is_not_shared_when_tenants_differ(callers: dict[str, Known]) -> None:
    """What one tenant's prompt left in the KV cache tells another nothing."""
    prompt = [SYSTEM, {"role": "user", "content": "Name one metal."}]
    fields = {"model": "smollm2-135m-instruct", "max_tokens": 2}
    bypass = {"cache-control": "no-cache, no-store"}

    def cached(tenant: str) -> int:
        usage = callers[tenant].answer(prompt, headers=bypass, **fields).json()["usage"]
        return int(usage["prompt_tokens_details"]["cached_tokens"])

    cached("alpha")
    assert cached("alpha") > 100
    assert cached("beta") == 0


@pytest.mark.parametrize("authorization", [None, "Bearer sk-unknown-key-of-nobody", "Basic x", ""])
def test_request_is_unauthorized_when_the_key_is_missing_or_unknown(
    keyed: tuple[Stack, dict[str, str], FakeUpstream], authorization: str | None
) -> None:
    """A 401 in the envelope on every model route."""
    headers = {} if authorization is None else {"authorization": authorization}
    stack = keyed[0]
    for method, path in [("POST", "/v1/chat/completions"), ("GET", "/v1/models")]:
        response = httpx.request(
            method, stack.url + path, headers=headers, json={}, trust_env=False
        )
        assert response.status_code == 401
        assert response.json()["error"]["message"]


def test_health_and_metrics_are_open_when_keys_are_set(
    keyed: tuple[Stack, dict[str, str], FakeUpstream],
) -> None:
    """Probes and scrapers need no key."""
    for path in ("/health/live", "/health/ready", "/metrics"):
        assert httpx.get(keyed[0].url + path, trust_env=False).status_code == 200


def test_admin_needs_its_key_when_one_is_set(
    keyed: tuple[Stack, dict[str, str], FakeUpstream],
) -> None:
    """A tenant's key opens no admin route."""
    stack, keys, _ = keyed
    for headers, expected in [
        ({}, 401),
        ({"authorization": f"Bearer {keys['alpha']}"}, 401),
        ({"authorization": f"Bearer {ADMIN}"}, 200),
        ({"x-strata-admin-key": ADMIN}, 200),
    ]:
        response = httpx.get(f"{stack.url}/admin/stats", headers=headers, trust_env=False)
        assert response.status_code in ({expected, 403} if expected == 401 else {expected})


def test_only_its_own_entries_go_when_a_tenant_is_purged(
    keyed: tuple[Stack, dict[str, str], FakeUpstream], callers: dict[str, Known]
) -> None:
    """Deleting by tenant leaves the others alone."""
    for caller in callers.values():
        caller.seed("Name one metal.")
    admin = callers["alpha"].http
    assert admin.delete("/admin/cache/entries", params={"tenant": "alpha"}).status_code == 200
    outcomes = {
        name: caller.lookup(caller.body("Name one metal."))["outcome"]
        for name, caller in callers.items()
    }
    assert outcomes == {"alpha": "miss", "beta": "exact"}


def test_keys_are_kept_as_hashes_and_never_logged(
    keyed: tuple[Stack, dict[str, str], FakeUpstream], callers: dict[str, Known]
) -> None:
    """Neither the keys file nor the log holds a key, nor the log a prompt."""
    stack, keys, _ = keyed
    callers["alpha"].answer("A prompt with the word xylophone.")
    file = (stack.folder / "keys.toml").read_text(encoding="utf-8")
    for key in keys.values():
        assert key not in file
        assert key not in stack.log
    assert ADMIN not in stack.log
    assert "xylophone" not in stack.log
