"""Each check against a sound gateway and against the faults that it is there for."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.backends.base import PartHealth
from gateway.backends.prompt_kinds import PromptKind
from gateway.doctor import Snapshot, findings_of
from gateway.doctor.checks import CHECKS
from gateway.doctor.checks.backends import check_backends
from gateway.doctor.checks.conflicts import check_settings
from gateway.doctor.checks.hit_shares import check_hit_shares
from gateway.doctor.checks.lifetimes import check_lifetimes
from gateway.doctor.checks.look_ups import check_look_ups
from gateway.doctor.checks.memory import check_memory
from gateway.doctor.checks.prompts import check_prompts
from gateway.doctor.checks.stores import check_stores
from gateway.doctor.checks.tenants import check_tenants
from gateway.doctor.checks.thresholds import check_thresholds
from gateway.doctor.checks.warm_up import check_warm_up
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Intent, TenantUse
from gateway.doctor.traffic import Traffic
from gateway.evidence import ReasonRow
from gateway.readings import Health
from semantic_layer import PartState, Room
from tests.gateway.doctor.seen import (
    NOW,
    TTL_S,
    counters,
    engine,
    engine_stats,
    glance,
    only,
    prefix,
    replica,
    report,
    settings,
    skipping,
    sound,
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


FAULTS: list[tuple[str, Check, dict[str, Any], str, str]] = [
    (
        "redis down",
        check_stores,
        {"stores": {"redis": PartState(False, "connection refused")}},
        "error",
        "redis.url",
    ),
    ("a breaker open", check_stores, {"breakers": {"verifier": True}}, "error", "verifier"),
    (
        "redis slow",
        check_stores,
        {"stores": {"redis": PartState(True, seconds=0.2)}},
        "warning",
        "redis.timeout_s",
    ),
    (
        "failures before",
        check_stores,
        {"counters": counters(store_failures={("qdrant",): 4.0})},
        "notice",
        "qdrant.timeout_s",
    ),
    (
        "engine down",
        check_backends,
        {"health": Health({"engine": PartHealth(False, "down", "out of memory")})},
        "error",
        "local.kv_tokens",
    ),
    ("engine restarted", check_backends, {"engine": engine(restarts=2)}, "warning", "log"),
    (
        "all replicas down",
        check_backends,
        {"replicas": {"vllm": [replica("down")]}},
        "error",
        "fallbacks",
    ),
    (
        "one replica down",
        check_backends,
        {"replicas": {"vllm": [replica("down"), replica()]}},
        "warning",
        "fallbacks",
    ),
    (
        "upstream limited",
        check_backends,
        {
            "replicas": {"vllm": [replica()]},
            "counters": counters(upstream_requests={("vllm", "200"): 80.0, ("vllm", "429"): 20.0}),
        },
        "warning",
        "replicas",
    ),
    (
        "stand-ins",
        check_backends,
        {"counters": counters(upstream_fallbacks={("big", "small"): 3.0})},
        "notice",
        "/admin/upstreams",
    ),
    (
        "no labels",
        check_thresholds,
        {"intents": [intent()]},
        "warning",
        "semantic.shadow_share to 0.05",
    ),
    (
        "few labels",
        check_thresholds,
        {"intents": [intent(labels=10, high=0.3)]},
        "notice",
        "/admin/review?intent=factual",
    ),
    (
        "bound above budget",
        check_thresholds,
        {"intents": [proven(wrong=4, low=0.002, high=0.02, safe=0.97)]},
        "notice",
        '{"threshold": 0.9700}',
    ),
    (
        "proven wrong",
        check_thresholds,
        {"intents": [proven(wrong=60, low=0.08, high=0.13, safe=0.985)]},
        "error",
        'PUT /admin/intents/factual {"threshold": 0.9850}',
    ),
    (
        "proven wrong everywhere",
        check_thresholds,
        {"intents": [proven(wrong=600, low=0.9, high=1.0, safe=None)]},
        "error",
        '{"mode": "off"}',
    ),
    (
        "drift",
        check_thresholds,
        {"intents": [proven(drifted=True)]},
        "warning",
        "DELETE /admin/cache/entries",
    ),
    (
        "a dear timestamp",
        check_prompts,
        {"engine": engine(prompts=report(span(3000)))},
        "warning",
        "move it to the end",
    ),
    (
        "a cheap tool order",
        check_prompts,
        {"engine": engine(prompts=report(span(400, cause="tool_order")))},
        "notice",
        "layout.tools to by_name",
    ),
    (
        "evicted KV",
        check_hit_shares,
        {
            "engine": engine(stats=engine_stats(evictions_by_tier={"device": 9})),
            "traffic": generations(10),
        },
        "warning",
        "local.kv_tokens to 65536",
    ),
    (
        "caching off",
        check_hit_shares,
        {"settings": settings("local", prefix_caching="off"), "traffic": generations(0)},
        "warning",
        "local.prefix_caching to on",
    ),
    (
        "rewritten histories",
        check_hit_shares,
        {"engine": engine(prompts=report(kinds=[PromptKind("multi-turn", 40, 9000, 0.2, 0.8)]))},
        "warning",
        "only append",
    ),
    (
        "many near misses",
        check_hit_shares,
        {"traffic": near_misses(20, of=100)},
        "notice",
        "/admin/intents/factual/replay",
    ),
    (
        "too hot",
        check_hit_shares,
        {"traffic": skipping("temperature", "1.2 is above 1", num=30, of=60, outcome="bypass")},
        "warning",
        "cache.max_temperature",
    ),
    (
        "bypassed by clients",
        check_hit_shares,
        {"traffic": skipping("cache-control", num=30, of=60, outcome="bypass")},
        "notice",
        "no-cache",
    ),
    (
        "too long",
        check_hit_shares,
        {"traffic": skipping("window", num=30, of=60)},
        "notice",
        "query",
    ),
    (
        "context beyond pool",
        check_memory,
        {"engine": engine(context_tokens=131_072)},
        "warning",
        "local.kv_tokens to 262144",
    ),
    (
        "pool turned over",
        check_memory,
        {"engine": engine(stats=engine_stats(evictions_by_tier={"device": 900}))},
        "warning",
        "local.kv_tokens to 65536",
    ),
    (
        "tier failing",
        check_memory,
        {"engine": engine(stats=engine_stats(failures_by_tier={"disk": 3}))},
        "warning",
        "local.kv_dir",
    ),
    (
        "damaged files",
        check_memory,
        {"engine": engine(stats=engine_stats(broken_by_tier={"disk": 1}))},
        "warning",
        "disk",
    ),
    (
        "redis full",
        check_memory,
        {"room": Room(used_bytes=95, limit_bytes=100)},
        "warning",
        "cache.max_memory_bytes to 200",
    ),
    (
        "redis evicts",
        check_memory,
        {"room": Room(used_bytes=5, limit_bytes=100, drops_entries=True, num_dropped=3)},
        "warning",
        "noeviction",
    ),
    (
        "too few entries",
        check_memory,
        {
            "settings": settings("cache", max_entries=10),
            "counters": counters(entries_removed={("size",): 50.0}),
            "traffic": repeated(TTL_S / 2),
        },
        "warning",
        "cache.max_entries to 20",
    ),
    (
        "queue full",
        check_memory,
        {"counters": counters(write_back_dropped={(): 2.0})},
        "warning",
        "cache.write_queue to 4096",
    ),
    (
        "expired too soon",
        check_lifetimes,
        {"traffic": repeated(2 * TTL_S)},
        "warning",
        'PUT /admin/intents/factual {"ttl": 2220}',
    ),
    (
        "gone early",
        check_lifetimes,
        {"traffic": repeated(TTL_S / 2)},
        "notice",
        "GET /admin/requests",
    ),
    ("never used", check_lifetimes, {"traffic": never_used()}, "notice", "cacheable = false"),
    (
        "always stale",
        check_lifetimes,
        {"counters": counters(refreshes={("done",): 60.0}), "outcomes": {"exact": 70}},
        "warning",
        "cache.ttl_s",
    ),
    (
        "not made anew",
        check_lifetimes,
        {"counters": counters(refreshes={("failed",): 3.0})},
        "warning",
        "/health/ready",
    ),
    (
        "verifier late",
        check_look_ups,
        {"traffic": skipping("verify", num=5, of=100)},
        "warning",
        "semantic.verifier_timeout_s",
    ),
    (
        "another embedder",
        check_look_ups,
        {"settings": settings("embedder", model="upstream:a/b")},
        "notice",
        "embedder.model to bundled",
    ),
    (
        "no verifier",
        check_look_ups,
        {"settings": settings("semantic", verifier="none")},
        "notice",
        "semantic.verifier to bundled",
    ),
    (
        "a shared prefix at risk",
        check_warm_up,
        {
            "engine": engine(
                prefixes=[prefix()], stats=engine_stats(evictions_by_tier={"device": 1})
            )
        },
        "notice",
        "strata warm",
    ),
    (
        "quota used up",
        check_tenants,
        {"tenants": [TenantUse("alice", {"tokens_per_day": (1000.0, 1000.0)})]},
        "warning",
        "strata keys limit alice --tokens-per-day 2000",
    ),
    (
        "near quota",
        check_tenants,
        {"tenants": [TenantUse("alice", {"requests_per_minute": (10.0, 9.0)})]},
        "notice",
        "--requests-per-minute 20",
    ),
    (
        "mostly stale",
        check_settings,
        {"settings": settings("cache", ttl_s=60, stale_while_revalidate_s=3600)},
        "warning",
        "cache.stale_while_revalidate_s to 60",
    ),
    (
        "no budget",
        check_settings,
        {"settings": settings("semantic", wrong_hit_budget=0.0)},
        "notice",
        "semantic.wrong_hit_budget to 0.01",
    ),
    (
        "nothing learnt",
        check_settings,
        {"settings": settings("semantic", gray_share=0.0), "outcomes": {"semantic": 3}},
        "warning",
        "semantic.gray_share to 1",
    ),
    (
        "no records",
        check_settings,
        {"settings": settings("requests", kept=0)},
        "notice",
        "requests.kept to 10000",
    ),
]


@pytest.mark.parametrize(("check", "changes", "severity", "mend"), [fault[1:] for fault in FAULTS])
def test_fault_is_found_with_its_mend(
    check: Check, changes: dict[str, Any], severity: str, mend: str
) -> None:
    """One finding, as grave as it is, that names what to change."""
    finding = only(check(sound(**changes)))
    assert finding.severity == severity
    assert mend in finding.mend
    assert finding.evidence


@pytest.mark.parametrize("check", CHECKS)
def test_check_is_ok_when_nothing_is_wrong(check: Check) -> None:
    """It says what it looked at."""
    finding = only(check(sound()))
    assert (finding.severity, finding.mend) == ("ok", "")
    assert finding.evidence


SOUND: list[tuple[Check, dict[str, Any]]] = [
    (check_thresholds, {"intents": [proven()]}),
    (check_thresholds, {"intents": [intent(served=3)]}),
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


@pytest.mark.parametrize(("check", "changes"), SOUND)
def test_check_is_ok_when_there_is_too_little_to_blame(
    check: Check, changes: dict[str, Any]
) -> None:
    """Small numbers, mended faults and clients' own mistakes are no findings."""
    assert only(check(sound(**changes))).severity == "ok"


@pytest.mark.parametrize(
    ("section", "changes"), [("requests", {"texts": "off"}), ("dashboard", {"mask_prompts": True})]
)
def test_no_words_are_quoted_when_they_are_masked(section: str, changes: dict[str, Any]) -> None:
    """Neither prompts nor questions; figures and mends stay."""
    evicting = engine_stats(evictions_by_tier={"device": 1})
    snapshot = sound(
        settings=settings(section, **changes),
        traffic=traffic(
            *[
                glance(NOW - i, entry="e", seconds=0.1, question="secret question")
                for i in range(30)
            ]
        ),
        engine=engine(
            prompts=report(span(3000)), prefixes=[prefix(text="secret prefix")], stats=evicting
        ),
    )
    told = findings_of(snapshot)
    assert {"prompts", "warm_up", "lifetimes"} <= {f.check for f in told if f.severity != "ok"}
    words = " ".join(finding.title + finding.evidence + finding.mend for finding in told)
    assert "secret" not in words
    assert "a time that changes" not in words


def test_worst_finding_comes_first_when_several_are_found() -> None:
    """Whatever the order of the checks is."""
    found = findings_of(
        sound(
            settings=settings("requests", kept=0),
            stores={"redis": PartState(False, "gone")},
            engine=engine(restarts=1),
        )
    )
    assert [finding.severity for finding in found][:3] == ["error", "warning", "notice"]
    assert {finding.severity for finding in found[3:]} == {"ok"}


def test_every_check_speaks_when_a_gateway_has_seen_nothing() -> None:
    """One line each, all well: a fresh start is no fault."""
    found = findings_of(sound())
    assert len({finding.check for finding in found}) == len(CHECKS)
    assert {finding.severity for finding in found} == {"ok"}
