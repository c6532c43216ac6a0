"""Whether the caches' parts answer, how fast, and whether they failed before."""

from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

CHECK = "stores"
SLOW_SHARE = 0.2  # of a part's time limit: an answer that takes longer is a miss soon
_WHAT = {
    "redis": "the response store",
    "qdrant": "the vector index",
    "embedder": "the embedder",
    "verifier": "the verifier",
}
_LOST = {
    "redis": "nothing is found and nothing kept",
    "qdrant": "there are exact hits only",
    "embedder": "there are exact hits only",
    "verifier": "what no rule decides is a miss",
}


def check_stores(seen: Snapshot) -> list[Finding]:
    """Look at every part of the caches that is switched on."""
    names = ["redis"]
    if seen.settings.semantic.enabled:
        names += ["qdrant", "embedder"]
    if seen.settings.semantic.enabled and seen.settings.semantic.verifier != "none":
        names += ["verifier"]
    found = [finding for name in names if (finding := _part(seen, name)) is not None]
    return found or [_all_well(seen, names)]


def _part(seen: Snapshot, name: str) -> Finding | None:
    state = seen.stores.get(name)
    failures = seen.counters.sum("store_failures", name)
    if (state is not None and not state.ok) or seen.breakers.get(name, False):
        return Finding(
            check=CHECK,
            severity="error",
            title=f"{_what(name)} does not answer: {_LOST[name]}",
            evidence=f"{(state and state.detail) or 'its breaker is open'}; "
            f"{failures:.0f} calls failed since the start",
            mend=_where(seen, name),
        )
    limit_s = _limit_s(seen, name)
    if state is not None and state.seconds > SLOW_SHARE * limit_s:
        return Finding(
            check=CHECK,
            severity="warning",
            title=f"{_what(name)} is slow",
            evidence=f"a ping took {1000 * state.seconds:.1f} ms; after {1000 * limit_s:.0f} ms a "
            f"call is a miss; {failures:.0f} failed since the start",
            mend=f"move it nearer, or raise {name}.timeout_s above {limit_s:g}",
        )
    if failures:
        return Finding(
            check=CHECK,
            severity="notice",
            title=f"{_what(name)} failed before and works again",
            evidence=f"{failures:.0f} calls failed since the start; each made a miss",
            mend=f"look in the log for what happened; if it was slow, raise {_limit_key(name)} "
            f"above {limit_s:g}",
        )
    return None


def _all_well(seen: Snapshot, names: list[str]) -> Finding:
    pings = [
        f"{name} in {1000 * state.seconds:.1f} ms"
        for name in names
        if (state := seen.stores.get(name)) is not None and state.seconds
    ]
    kept = [f"{number} entries in {store}" for store, number in seen.entries.items()]
    return Finding(
        check=CHECK,
        severity="ok",
        title="Stores and models of the caches answer",
        evidence="; ".join(
            [", ".join(pings), ", ".join(kept), f"no failed call of {_list(names)}"]
        ),
    )


def _what(name: str) -> str:
    return (
        f"{_WHAT[name].capitalize()} ({name})"
        if name in ("redis", "qdrant")
        else (_WHAT[name].capitalize())
    )


def _limit_key(name: str) -> str:
    return "semantic.verifier_timeout_s" if name == "verifier" else f"{name}.timeout_s"


def _limit_s(seen: Snapshot, name: str) -> float:
    settings = seen.settings
    return {
        "redis": settings.redis.timeout_s,
        "qdrant": settings.qdrant.timeout_s,
        "embedder": settings.embedder.timeout_s,
        "verifier": settings.semantic.verifier_timeout_s,
    }[name]


def _where(seen: Snapshot, name: str) -> str:
    match name:
        case "redis" | "qdrant":
            url = seen.settings.redis.url if name == "redis" else seen.settings.qdrant.url
            if url in ("embedded", "memory"):
                return f"{name}.url is {url}: restart the gateway, and see its log"
            return f"bring up the server that {name}.url names; the gateway finds it by itself"
        case _:
            key = "semantic.verifier" if name == "verifier" else "embedder.model"
            return f"see the log, and whether {key} can be loaded; it is tried again by itself"


def _list(names: list[str]) -> str:
    return ", ".join(names)
