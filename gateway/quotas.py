"""Enforces tenants' rates, budgets and concurrency. Knows no HTTP and no store's client.

Rates slide over the last minute; budgets are calendar days and months, UTC. A request is counted
when it is admitted, its tokens when it has ended, so a tenant can pass a token limit by what is
running then, once. ``max_concurrent`` counts this process's requests alone.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta

from gateway.auth import Tenant
from gateway.errors import RateLimited
from gateway.rules import UNRESTRICTED, TenantRules
from semantic_layer import Counted, Counters, MemoryCounters, StoreError, Verdict, Window

MINUTE_S = 60
_MONTH_TTL_S = 63 * 86400
_BUSY_RETRY_S = 1.0


Allowance = tuple[tuple[str, str], ...]
"""What is left of the minute's limits, as OpenAI's ``x-ratelimit-*`` headers."""


class Ticket:
    """One admitted request; `end` it exactly once."""

    def __init__(self, allowance: Allowance, end: Callable[[int], None]) -> None:
        self.allowance = allowance
        self._end: Callable[[int], None] | None = end

    def end(self, num_tokens: int) -> None:
        """Give the place back and charge the tokens a model processed; later calls do nothing."""
        if self._end is not None:
            end, self._end = self._end, None
            end(num_tokens)


class Quotas:
    """Admits requests of tenants.

    While the shared counters are down, this process counts alone: limits hold per gateway.

    Args:
        counters: where rates and budgets are counted, shared by all gateways.
        on_failure: told each time the counters were down.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        on_failure: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._counters = counters
        self._fallback = MemoryCounters()
        self._on_failure = on_failure
        self._now = now
        self._running: Counter[str] = Counter()
        self._charges: set[asyncio.Task[None]] = set()

    async def admit(self, tenant: Tenant) -> Ticket:
        """Count one request of a tenant, or refuse it.

        Raises:
            RateLimited: one of its limits is used up.
        """
        rules = tenant.rules
        if rules is UNRESTRICTED or not rules.are_limits:
            return Ticket((), _free)
        self._check_concurrency(tenant)
        self._running[tenant.name] += 1
        try:
            allowance = await self._count(tenant)
        except BaseException:
            self._leave(tenant)
            raise

        def end(num_tokens: int) -> None:
            self._leave(tenant)
            if num_tokens:
                self._charge_soon(tenant, num_tokens)

        return Ticket(allowance, end)

    async def usage(self, tenant: Tenant) -> dict[str, dict[str, float | int | None]]:
        """Return ``{limit: {limit, used}}`` of every limit the tenant has."""
        rules, windows = tenant.rules, _windows(tenant.rules, self._now(), cost=0)
        seen = {
            window.name: {"limit": window.limit, "used": counted.used(window)}
            for window, counted in zip(windows, await self._look(tenant, windows), strict=True)
        }
        if rules.max_concurrent is not None:
            seen["max_concurrent"] = {
                "limit": rules.max_concurrent,
                "used": self._running[tenant.name],
            }
        return seen

    async def close(self) -> None:
        """Wait for what is still to be charged, then let go of the counters."""
        if self._charges:
            await asyncio.wait(self._charges, timeout=1)
        await self._counters.close()

    def _check_concurrency(self, tenant: Tenant) -> None:
        limit = tenant.rules.max_concurrent
        if limit is not None and self._running[tenant.name] >= limit:
            raise RateLimited(
                f"{limit} requests of this key's tenant are running, its limit (max_concurrent)",
                {"retry-after": f"{_BUSY_RETRY_S:.0f}"},
                code="concurrency_limit_exceeded",
            )

    def _leave(self, tenant: Tenant) -> None:
        self._running[tenant.name] -= 1
        if not self._running[tenant.name]:
            del self._running[tenant.name]

    async def _count(self, tenant: Tenant) -> Allowance:
        now = self._now()
        windows = _windows(tenant.rules, now, cost=1)
        if not windows:
            return ()
        verdict = await self._admit(tenant, windows)
        if verdict.refused is not None:
            at = verdict.refused
            raise _refusal(windows[at], verdict.counted[at], now)
        return _allowance(windows, verdict.counted, now)

    async def _admit(self, tenant: Tenant, windows: Sequence[Window]) -> Verdict:
        try:
            return await self._counters.admit(tenant.name, windows)
        except StoreError:
            self._on_failure()
            return await self._fallback.admit(tenant.name, windows)

    async def _look(self, tenant: Tenant, windows: Sequence[Window]) -> list[Counted]:
        free = [_unlimited(window, cost=0) for window in windows]
        return (await self._admit(tenant, free)).counted if free else []

    def _charge_soon(self, tenant: Tenant, num_tokens: int) -> None:
        windows = [
            _unlimited(window, cost=num_tokens)
            for window in _windows(tenant.rules, self._now(), cost=0)
            if window.name.startswith("tokens")
        ]
        if windows:
            self._spawn(self._charge(tenant, windows))

    async def _charge(self, tenant: Tenant, windows: Sequence[Window]) -> None:
        await self._admit(tenant, windows)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._charges.add(task)
        task.add_done_callback(self._charges.discard)


def _free(_: int) -> None:
    """End a ticket that holds nothing."""


def _windows(rules: TenantRules, now: float, cost: int) -> list[Window]:
    minute, day = int(now // MINUTE_S), int(now // 86400)
    carry = 1 - now % MINUTE_S / MINUTE_S
    date = datetime.fromtimestamp(now, UTC)
    month = date.year * 12 + date.month
    every = [
        Window("requests_per_minute", minute, carry, cost, rules.requests_per_minute, 150),
        Window("tokens_per_minute", minute, carry, 0, rules.tokens_per_minute, 150),
        Window("tokens_per_day", day, 0.0, 0, rules.tokens_per_day, 2 * 86400 + 60),
        Window("tokens_per_month", month, 0.0, 0, rules.tokens_per_month, _MONTH_TTL_S),
    ]
    return [window for window in every if window.limit is not None]


def _unlimited(window: Window, cost: int) -> Window:
    return Window(window.name, window.slot, window.carry, cost, None, window.ttl_s)


def _refusal(window: Window, counted: Counted, now: float) -> RateLimited:
    wait_s = max(1, math.ceil(_wait_s(window, counted, now)))
    assert window.limit is not None
    is_budget = window.name in ("tokens_per_day", "tokens_per_month")
    return RateLimited(
        f"limit {window.name} = {window.limit} of this key's tenant is used up; "
        f"try again in {wait_s} s",
        {"retry-after": str(wait_s), **dict(_headers(window, counted, now))},
        code="insufficient_quota" if is_budget else None,
    )


def _wait_s(window: Window, counted: Counted, now: float) -> float:
    """Return the seconds until one more fits, if nothing else comes."""
    if window.name == "tokens_per_day":
        return 86400 - now % 86400
    if window.name == "tokens_per_month":
        return _next_month(now) - now
    assert window.limit is not None
    left_s, target = MINUTE_S - now % MINUTE_S, window.limit - max(window.cost, 1)
    if counted.current <= target:
        return left_s - MINUTE_S * (target - counted.current) / max(counted.previous, 1)
    return left_s + MINUTE_S * (1 - target / counted.current)


def _next_month(now: float) -> float:
    first = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0)
    return (first.replace(microsecond=0) + timedelta(days=32)).replace(day=1).timestamp()


def _allowance(windows: Sequence[Window], counted: Sequence[Counted], now: float) -> Allowance:
    after = (
        Counted(seen.current + window.cost, seen.previous)
        for window, seen in zip(windows, counted, strict=True)
    )
    pairs = zip(windows, after, strict=True)
    return tuple(header for window, seen in pairs for header in _headers(window, seen, now))


def _headers(window: Window, counted: Counted, now: float) -> list[tuple[str, str]]:
    kind, _, span = window.name.partition("_per_")
    if span != "minute":
        return []
    assert window.limit is not None
    left = max(0, math.floor(window.limit - counted.used(window)))
    return [
        (f"x-ratelimit-limit-{kind}", str(window.limit)),
        (f"x-ratelimit-remaining-{kind}", str(left)),
        (f"x-ratelimit-reset-{kind}", f"{2 * MINUTE_S - now % MINUTE_S:.0f}s"),
    ]
