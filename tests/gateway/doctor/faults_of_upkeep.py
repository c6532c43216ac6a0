"""Gateways with one fault each, of what keeps the caches going."""

from typing import Any

from gateway.doctor.checks.conflicts import check_settings
from gateway.doctor.checks.lifetimes import check_lifetimes
from gateway.doctor.checks.look_ups import check_look_ups
from gateway.doctor.checks.memory import check_memory
from gateway.doctor.checks.tenants import check_tenants
from gateway.doctor.checks.warm_up import check_warm_up
from gateway.doctor.snapshot import TenantUse
from semantic_layer import Room
from tests.gateway.doctor.cases import (
    Check,
    never_used,
    repeated,
)
from tests.gateway.doctor.seen import (
    TTL_S,
    counters,
    engine,
    engine_stats,
    prefix,
    settings,
    skipping,
)

FAULTS_OF_UPKEEP: list[tuple[str, Check, dict[str, Any], str, str]] = [
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
