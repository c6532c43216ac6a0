"""Snapshots for the checks: a sound gateway, and whatever a test changes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.backends.base import PartHealth
from gateway.backends.local_prefix import SharedPrefix
from gateway.backends.prompt_kinds import PromptKind
from gateway.backends.upstream import ReplicaView
from gateway.backends.volatile import VolatileReport, VolatileSpan
from gateway.doctor import Finding, Snapshot
from gateway.doctor.counters import Counters
from gateway.doctor.snapshot import Engine
from gateway.doctor.traffic import Traffic, traffic_of
from gateway.evidence import Glance, ReasonRow
from gateway.readings import Health
from gateway.settings import Settings
from prefix_layer import EngineStats
from semantic_layer import PartState, Room

NOW = 1_000_000.0
TTL_S = 1000.0
MODEL = "local"


def engine_stats(**more: Any) -> EngineStats:
    sound = EngineStats(
        request_id="1",
        block_size=16,
        num_blocks=100,
        blocks_by_state={"free": 50, "cached": 50},
        bytes_by_tier={"device": 1 << 20},
        tokens_by_source={"device": 900, "computed": 100},
        evictions_by_tier={"device": 0},
        num_waiting=0,
        num_running=0,
        batch_tokens=0,
    )
    return EngineStats(**{name: getattr(sound, name) for name in sound.__struct_fields__} | more)


def report(
    *spans: VolatileSpan,
    requests: int = 30,
    hit_share: float = 0.8,
    tokens: int = 10_000,
    kinds: Sequence[PromptKind] = (),
) -> VolatileReport:
    return VolatileReport(requests, tokens, hit_share, 0.9, list(spans), list(kinds))


def span(lost_tokens: int, *, requests: int = 9, cause: str = "timestamp") -> VolatileSpan:
    return VolatileSpan(
        tenant="public",
        cause=cause,
        name="",
        role="system",
        field="messages[0].content",
        message=0,
        char=5,
        token=7,
        requests=requests,
        lost_tokens=lost_tokens,
        lost_per_1000=lost_tokens,
        detail="a time that changes",
        mend="move it to the end",
    )


def prefix(**more: Any) -> SharedPrefix:
    sound = {
        "id": "a",
        "parent": None,
        "tenant": "public",
        "tokens": 500,
        "own_tokens": 500,
        "refs": 0,
        "hits": 90,
        "children": 1,
        "depth": 1,
        "pinned": False,
        "text": "You answer questions",
    }
    return SharedPrefix(**sound | more)


def replica(state: str = "ready", url: str = "http://one/v1") -> ReplicaView:
    return ReplicaView(url, state, 0, 1.0, 10, 0, "" if state == "ready" else "no route")  # type: ignore[arg-type]


def glance(at: float, outcome: str = "miss", **more: Any) -> Glance:
    sound = {"tenant": "public", "route": "/v1/chat/completions", "model": MODEL, "seconds": 1.0}
    answered: dict[str, Any] = {"prompt_tokens": 10, "cached_tokens": 0}
    return Glance(
        **{"id": f"req-{at}", "at": at, "outcome": outcome, "intent": "factual", **sound}
        | answered
        | more
    )


def skipping(check: str, detail: str = "", *, num: int, of: int, outcome: str = "miss") -> Traffic:
    """Traffic of which some requests left something out."""
    reasons = [ReasonRow(check, "skip", detail)]
    some = [glance(NOW - i, outcome, reasons=reasons) for i in range(num)]
    return traffic(*some, *[glance(NOW - i, "exact") for i in range(num, of)])


def traffic(*requests: Glance, prompts: int = 0) -> Traffic:
    """Count requests, given newest first."""
    return traffic_of(
        requests, ttl_of=lambda _: TTL_S, now=NOW, local_model=MODEL, most_prompts=prompts
    )


def sound(**changes: Any) -> Snapshot:
    """A gateway that nothing is wrong with, but for the changes."""
    well = PartHealth(True, "ready")
    snapshot = Snapshot(
        settings=Settings(),
        health=Health({"redis": well, "qdrant": well, "embedder": well, "engine": well}),
        stores={name: PartState(True, seconds=0.001) for name in ("redis", "qdrant", "embedder")},
        breakers={"redis": False, "qdrant": False, "embedder": False, "verifier": False},
        entries={"redis": 10, "qdrant": 9},
        room=Room(used_bytes=1 << 20, limit_bytes=1 << 30),
        engine=Engine(MODEL, engine_stats(), context_tokens=8192, prompts=report()),
    )
    return replace(snapshot, **changes)


def engine(**changes: Any) -> Engine:
    whole = sound().engine
    assert whole is not None
    return replace(whole, **changes)


def counters(**totals: dict[tuple[str, ...], float]) -> Counters:
    return Counters(totals)


def settings(section: str, **changes: Any) -> Settings:
    return replace(Settings(), **{section: replace(getattr(Settings(), section), **changes)})


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding
