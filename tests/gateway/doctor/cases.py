"""Traffic and intents for the checks, and sound gateways that look a little like faulty ones."""

from collections.abc import Callable
from typing import Any

from gateway.backends.prompt_kinds import PromptKind
from gateway.doctor import Snapshot
from gateway.doctor.checks.backends import check_backends
from gateway.doctor.checks.hit_shares import check_hit_shares
from gateway.doctor.checks.lifetimes import check_lifetimes
from gateway.doctor.checks.look_ups import check_look_ups
from gateway.doctor.checks.memory import check_memory
from gateway.doctor.checks.prompts import check_prompts
from gateway.doctor.checks.tenants import check_tenants
from gateway.doctor.checks.thresholds import check_thresholds
from gateway.doctor.checks.warm_up import check_warm_up
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Intent, TenantUse
from gateway.doctor.traffic import Traffic
from gateway.evidence import ReasonRow
from tests.gateway.doctor.seen import (
    NOW,
    TTL_S,
    counters,
    engine,
    engine_stats,
    glance,
    prefix,
    replica,
    report,
    skipping,
    span,
    traffic,
)

Check = Callable[[Snapshot], list[Finding]]


def generations(cached: int, num: int = 30) -> Traffic:
    asked = [glance(NOW - i, prompt_tokens=100, cached_tokens=cached) for i in range(num)]
    return traffic(*asked, prompts=num)


def near_misses(num: int, of: int) -> Traffic:
    reasons = [ReasonRow("guards", "pass"), ReasonRow("threshold", "veto", "0.91 / 0.95")]
    near = [glance(NOW - i, reasons=reasons) for i in range(num)]
    return traffic(*near, *[glance(NOW - i, "exact") for i in range(num, of)])


def repeated(age_s: float, num: int = 20) -> Traffic:
    """So many questions, each asked again after a time; the answers lived `TTL_S`."""
    requests = []
    for i in range(num):
        requests += [glance(NOW - 5 - i, entry=f"e{i}"), glance(NOW - 6 - i - age_s, entry=f"e{i}")]
    return traffic(*sorted(requests, key=lambda request: -request.at))


def never_used(num: int = 120) -> Traffic:
    return traffic(*[glance(NOW - 2 * TTL_S - i, entry=f"e{i}") for i in range(num)])


def intent(**more: Any) -> Intent:
    return Intent(**{"name": "factual", "threshold": 0.95, "budget": 0.01, "served": 40, **more})


def proven(**more: Any) -> Intent:
    return intent(**{"labels": 600, "wrong": 0, "low": 0.0, "high": 0.005, "safe": 0.93, **more})


SOUND: list[tuple[Check, dict[str, Any]]] = [
    (check_thresholds, {"intents": [proven()]}),
    (check_thresholds, {"intents": [intent(served=3)]}),
    (check_thresholds, {"intents": [intent(served=3, labels=1, wrong=1, low=0.01, high=1.0)]}),
    (check_thresholds, {"intents": [proven(mode="off", wrong=600, low=0.9, high=1.0)]}),
    (check_hit_shares, {"traffic": generations(80)}),
    (
        check_hit_shares,
        {"engine": engine(prompts=report(kinds=[PromptKind("multi-turn", 40, 9000, 0.7, 0.8)]))},
    ),
    (check_hit_shares, {"traffic": near_misses(2, of=100)}),
    (check_memory, {"engine": engine(stats=engine_stats(evictions_by_tier={"device": 9}))}),
    (check_memory, {"room": None, "engine": None}),
    (check_lifetimes, {"traffic": repeated(30 * 86_400.0)}),
    (check_look_ups, {"traffic": skipping("verify", num=1, of=100)}),
    (check_warm_up, {"engine": engine(prefixes=[prefix()])}),
    (
        check_warm_up,
        {
            "engine": engine(
                prefixes=[prefix(pinned=True)], stats=engine_stats(evictions_by_tier={"device": 1})
            )
        },
    ),
    (check_backends, {"replicas": {"vllm": [replica(), replica("drained")]}, "engine": None}),
    (
        check_backends,
        {
            "replicas": {"vllm": [replica()]},
            "counters": counters(upstream_requests={("vllm", "200"): 80.0, ("vllm", "400"): 20.0}),
        },
    ),
    (check_prompts, {"engine": engine(prompts=report(span(100)))}),
    (check_prompts, {"engine": engine(prompts=report(span(900), requests=2))}),
    (check_tenants, {"tenants": [TenantUse("alice", {"tokens_per_day": (1000.0, 100.0)})]}),
]
