"""Tenants' rules through the real SDK: limits, budgets, models, namespaces, caches, usage."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.contract.client import until
from tests.contract.stack import Stack, serving, upstream_toml
from tests.contract.test_tenants import ADMIN, new_key
from tests.fakes.upstream import Answer, FakeUpstream, streamed

RULES = """
[tenants.rated]
requests_per_minute = 3

[tenants.metered]
tokens_per_day = 1

[tenants.kept]
models = ["stub-*"]
namespaces = ["eu", "us"]

[tenants.reader]
cache = "read"

[tenants.stranger]
cache = "off"
max_concurrent = 1
"""


@pytest.fixture(scope="module")
def ruled(
    tmp_path_factory: pytest.TempPathFactory, serving_models: Path
) -> Iterator[tuple[Stack, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("ruled")
    path = folder / "keys.toml"
    path.write_text(RULES, encoding="utf-8")
    names = ("rated", "metered", "kept", "reader", "stranger")
    keys = {name: new_key(path, name) for name in names}
    with (
        FakeUpstream() as fake,
        serving(
            folder,
            serving_models,
            toml=upstream_toml(fake.base_url, models=("stub-model", "other-model")),
            API_KEYS_FILE=str(path),
            ADMIN_KEY=ADMIN,
            LOCAL__MODEL="none",
            SEMANTIC__ENABLED="false",
        ) as stack,
    ):
        fake.script = lambda call: Answer(streamed(["Four."]))
        yield stack, keys


@pytest.fixture
def clients(ruled: tuple[Stack, dict[str, str]]) -> Iterator[dict[str, openai.OpenAI]]:
    stack, keys = ruled
    made = {
        tenant: openai.OpenAI(base_url=f"{stack.url}/v1", api_key=key, max_retries=0)
        for tenant, key in keys.items()
    }
    yield made
    for client in made.values():
        client.close()


def ask(client: openai.OpenAI, text: str = "Two and two?", **more: object) -> str | None:
    """Ask once; return how the caches answered."""
    raw = client.chat.completions.with_raw_response.create(
        model="stub-model",
        messages=[{"role": "user", "content": text}],
        **more,  # type: ignore[arg-type]
    )
    return raw.headers.get("x-strata-cache")


def test_fourth_request_of_a_minute_is_refused_when_three_are_allowed(
    clients: dict[str, openai.OpenAI],
) -> None:
    """Cache hits count as requests; the SDK sees its own error and when to come back."""
    client = clients["rated"]
    assert [ask(client) for _ in range(3)] == ["miss", "exact", "exact"]
    with pytest.raises(openai.RateLimitError) as caught:
        ask(client, stream=True)
    assert 1 <= int(caught.value.response.headers["retry-after"]) <= 120
    assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"


def test_hits_are_free_when_the_token_budget_is_used_up(
    clients: dict[str, openai.OpenAI],
) -> None:
    """A spent budget refuses every request of its day, with the code for used-up money."""
    client = clients["metered"]
    assert ask(client) == "miss"

    def refused() -> bool:
        try:
            ask(client, "Three and three?")
        except openai.RateLimitError as error:
            return error.code == "insufficient_quota"
        return False

    until(refused, limit_s=5, what="budget charged")


def test_other_models_do_not_exist_when_a_tenant_is_kept_to_some(
    clients: dict[str, openai.OpenAI],
) -> None:
    """The list shows what may be used, and the rest is refused by name."""
    client = clients["kept"]
    assert [model.id for model in client.models.list()] == ["stub-model"]
    with pytest.raises(openai.PermissionDeniedError, match="other-model"):
        client.chat.completions.create(
            model="other-model", messages=[{"role": "user", "content": "Hi"}]
        )
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other-model")


def test_namespaces_stay_apart_when_a_tenant_is_kept_to_some(
    clients: dict[str, openai.OpenAI],
) -> None:
    """Without a name a request works in the first one; a foreign name is refused."""
    client = clients["kept"]
    assert ask(client, "Where?", extra_headers={"x-strata-namespace": "eu"}) == "miss"
    assert ask(client, "Where?") == "exact"
    assert ask(client, "Where?", extra_body={"strata": {"namespace": "us"}}) == "miss"
    with pytest.raises(openai.PermissionDeniedError, match="asia"):
        ask(client, "Where?", extra_headers={"x-strata-namespace": "asia"})


def test_nothing_is_kept_when_a_tenant_may_only_read_or_not_even_that(
    clients: dict[str, openai.OpenAI],
) -> None:
    """Reading looks up and never stores; off does neither."""
    assert [ask(clients["reader"]) for _ in range(2)] == ["miss", "miss"]
    assert [ask(clients["stranger"]) for _ in range(2)] == ["bypass", "bypass"]


def test_usage_is_shown_when_the_admin_asks(
    ruled: tuple[Stack, dict[str, str]], clients: dict[str, openai.OpenAI]
) -> None:
    """Limits, use and traffic by tenant, in the admin API, the stats and the metrics."""
    stack = ruled[0]
    ask(clients["reader"], "Seven?")
    headers = {"x-strata-admin-key": ADMIN}
    with httpx.Client(base_url=stack.url, headers=headers, trust_env=False) as http:
        listed = {row["name"]: row for row in http.get("/admin/tenants").json()["data"]}
        stats, metrics = http.get("/admin/stats").json(), http.get("/metrics").text
    assert listed["rated"]["rules"]["requests_per_minute"] == 3
    assert listed["metered"]["limits"]["tokens_per_day"]["used"] >= 1
    assert listed["reader"]["traffic"]["outcomes"]["miss"] >= 1
    assert stats["by_tenant"]["reader"]["tokens"]["prompt"] >= 1
    assert 'strata_tenant_requests_total{outcome="miss",tenant="reader"}' in metrics


def test_new_rule_counts_without_a_restart_when_the_file_changes(
    ruled: tuple[Stack, dict[str, str]], clients: dict[str, openai.OpenAI]
) -> None:
    """An operator's change reaches a running gateway."""
    path = ruled[0].folder / "keys.toml"
    client = clients["reader"]
    ask(client)
    path.write_text(path.read_text().replace('cache = "read"', 'models = ["none"]'))

    def refused() -> bool:
        try:
            ask(client)
        except openai.PermissionDeniedError:
            return True
        return False

    until(refused, limit_s=10, what="the new rule holds")
