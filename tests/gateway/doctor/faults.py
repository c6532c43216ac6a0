"""Gateways with one fault each: the fault, who finds it, what is wrong, how grave, the mend."""

from typing import Any

from gateway.backends.base import PartHealth
from gateway.backends.prompt_kinds import PromptKind
from gateway.doctor.checks.backends import check_backends
from gateway.doctor.checks.hit_shares import check_hit_shares
from gateway.doctor.checks.prompts import check_prompts
from gateway.doctor.checks.stores import check_stores
from gateway.doctor.checks.thresholds import check_thresholds
from gateway.readings import Health
from semantic_layer import PartState
from tests.gateway.doctor.cases import (
    Check,
    generations,
    intent,
    near_misses,
    proven,
)
from tests.gateway.doctor.faults_of_upkeep import FAULTS_OF_UPKEEP
from tests.gateway.doctor.seen import (
    counters,
    engine,
    engine_stats,
    replica,
    report,
    settings,
    skipping,
    span,
)

_OF_ANSWERS: list[tuple[str, Check, dict[str, Any], str, str]] = [
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
    ("another key", check_stores, {"unread": {"intents": 2}}, "error", "cache.encryption_key"),
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
        "more traps than fitted for",
        check_thresholds,
        {"intents": [proven()], "trap_odds": 12.0},
        "notice",
        "GET /admin/review",
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
]

FAULTS = [*_OF_ANSWERS, *FAULTS_OF_UPKEEP]
