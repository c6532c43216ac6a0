"""Quotas: rates slide, budgets are calendar's, concurrency is given back, outages stay local."""

import pytest

from gateway.auth import Tenant
from gateway.errors import RateLimited
from gateway.quotas import Quotas
from gateway.rules import TenantRules
from semantic_layer import MemoryCounters, StoreUnavailable

START = 1_800_000_000.0  # a full minute
NEW_YEAR = 1_798_761_600.0  # 2027-01-01


class Clock:
    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class BrokenCounters(MemoryCounters):
    async def admit(self, owner: str, windows: object) -> object:  # type: ignore[override]
        raise StoreUnavailable("down")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quotas(clock: Clock) -> Quotas:
    return Quotas(MemoryCounters(), now=clock)


def tenant(name: str = "acme", **rules: object) -> Tenant:
    return Tenant.named(name, TenantRules(**rules))  # type: ignore[arg-type]


async def ask(quotas: Quotas, who: Tenant, num_tokens: int = 0) -> str:
    """Admit and end one request; give the refusal's code instead of raising it."""
    try:
        ticket = await quotas.admit(who)
    except RateLimited as error:
        return error.code or ""
    ticket.end(num_tokens)
    return "ok"


async def settle(quotas: Quotas) -> None:
    while quotas._charges:
        await next(iter(quotas._charges))


async def test_nothing_is_counted_when_a_tenant_has_no_limits() -> None:
    """An unlimited tenant does not even reach the counters."""
    quotas = Quotas(BrokenCounters())
    assert [await ask(quotas, tenant(), 10) for _ in range(5)] == ["ok"] * 5


async def test_request_is_refused_until_the_window_has_slid(quotas: Quotas, clock: Clock) -> None:
    """The wait that a refusal names is exactly long enough."""
    acme = tenant(requests_per_minute=3)
    clock.now += 30
    assert [await ask(quotas, acme) for _ in range(4)] == ["ok"] * 3 + ["rate_limit_exceeded"]
    with pytest.raises(RateLimited) as caught:
        await quotas.admit(acme)
    wait_s = int(caught.value.headers["retry-after"])
    clock.now += wait_s - 2
    assert await ask(quotas, acme) == "rate_limit_exceeded"
    clock.now += 2
    assert await ask(quotas, acme) == "ok"


async def test_only_its_own_requests_count_when_tenants_share_a_gateway(quotas: Quotas) -> None:
    """One tenant's flood takes nothing from another."""
    acme, beta = (tenant(name, requests_per_minute=1) for name in ("acme", "beta"))
    assert await ask(quotas, acme) == "ok"
    assert await ask(quotas, acme) == "rate_limit_exceeded"
    assert await ask(quotas, beta) == "ok"


async def test_tokens_are_charged_when_a_request_has_ended(quotas: Quotas, clock: Clock) -> None:
    """A limit passed by what was running refuses the next, until its minute is over."""
    acme = tenant(tokens_per_minute=100)
    assert await ask(quotas, acme, 250) == "ok"
    await settle(quotas)
    assert await ask(quotas, acme) == "rate_limit_exceeded"
    clock.now += 60 + 37  # 250 tokens weigh 95.8 now
    assert await ask(quotas, acme) == "ok"


@pytest.mark.parametrize(
    ("rule", "start", "passes"),
    [("tokens_per_day", NEW_YEAR - 3600, 3600), ("tokens_per_month", NEW_YEAR - 86400, 86400)],
)
async def test_budget_returns_when_its_day_or_month_is_over(
    rule: str, start: float, passes: float
) -> None:
    """Budgets end by the calendar, with the code SDKs know for used-up money."""
    clock = Clock(start)
    quotas, acme = Quotas(MemoryCounters(), now=clock), tenant(**{rule: 100})
    assert await ask(quotas, acme, 100) == "ok"
    await settle(quotas)
    with pytest.raises(RateLimited) as caught:
        await quotas.admit(acme)
    assert caught.value.code == "insufficient_quota"
    assert int(caught.value.headers["retry-after"]) == passes
    clock.now += passes
    assert await ask(quotas, acme) == "ok"


async def test_place_is_given_back_when_a_request_ends(quotas: Quotas) -> None:
    """Of two places, the third request gets one when another has ended; ending twice is once."""
    acme = tenant(max_concurrent=2)
    first, _ = await quotas.admit(acme), await quotas.admit(acme)
    assert await ask(quotas, acme) == "concurrency_limit_exceeded"
    first.end(0)
    first.end(0)
    await quotas.admit(acme)
    assert await ask(quotas, acme) == "concurrency_limit_exceeded"


async def test_place_is_given_back_when_a_rate_refuses(quotas: Quotas) -> None:
    """A refused request occupies nothing."""
    acme = tenant(max_concurrent=1, requests_per_minute=1)
    assert [await ask(quotas, acme) for _ in range(3)] == ["ok"] + ["rate_limit_exceeded"] * 2
    assert (await quotas.usage(acme))["max_concurrent"]["used"] == 0


async def test_limits_hold_in_this_process_when_the_counters_are_down() -> None:
    """An outage is counted, and nobody gets past a limit for it."""
    failures: list[None] = []
    quotas = Quotas(BrokenCounters(), on_failure=lambda: failures.append(None))
    acme = tenant(requests_per_minute=2)
    assert [await ask(quotas, acme) for _ in range(3)] == ["ok", "ok", "rate_limit_exceeded"]
    assert len(failures) == 3


async def test_rest_is_told_when_a_request_is_admitted(quotas: Quotas) -> None:
    """The headers are OpenAI's."""
    ticket = await quotas.admit(tenant(requests_per_minute=10, tokens_per_minute=500))
    told = dict(ticket.allowance)
    assert told["x-ratelimit-limit-requests"] == "10"
    assert told["x-ratelimit-remaining-requests"] == "9"
    assert told["x-ratelimit-remaining-tokens"] == "500"
