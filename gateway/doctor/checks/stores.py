"""Whether the caches' parts answer, how fast, and whether they failed before."""

from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Said, say

CHECK = "stores"
SLOW_SHARE = 0.2  # of a part's time limit: an answer that takes longer is a miss soon
_WHAT = {
    "redis": say("The response store (redis)"),
    "qdrant": say("The vector index (qdrant)"),
    "embedder": say("The embedder"),
    "verifier": say("The verifier"),
}
_LOST = {
    "redis": say("nothing is found and nothing kept"),
    "qdrant": say("there are exact hits only"),
    "embedder": say("there are exact hits only"),
    "verifier": say("what no rule decides is a miss"),
}


def check_stores(seen: Snapshot) -> list[Finding]:
    """Look at every part of the caches that is switched on."""
    names = ["redis"]
    if seen.settings.semantic.enabled:
        names += ["qdrant", "embedder"]
    if seen.settings.semantic.enabled and seen.settings.semantic.verifier != "none":
        names += ["verifier"]
    found = [finding for name in names if (finding := _part(seen, name)) is not None]
    if seen.unread:
        found.append(_unread(seen))
    return found or [_all_well(seen, names)]


def _part(seen: Snapshot, name: str) -> Finding | None:
    state, limit_s = seen.stores.get(name), _limit_s(seen, name)
    failures = seen.counters.sum("store_failures", name)
    failed = say("{n} calls failed since the start", n=f"{failures:.0f}")
    if (state is not None and not state.ok) or seen.breakers.get(name, False):
        why = (state and state.detail) or say("its breaker is open")
        return finding(
            CHECK,
            "error",
            say("{part} does not answer: {lost}", part=_WHAT[name], lost=_LOST[name]),
            Joined([why, failed]),
            _where(seen, name),
        )
    if state is not None and state.seconds > SLOW_SHARE * limit_s:
        ping = say(
            "a ping took {took} ms; after {limit} ms a call is a miss",
            took=f"{1000 * state.seconds:.1f}",
            limit=f"{1000 * limit_s:.0f}",
        )
        return finding(
            CHECK,
            "warning",
            say("{part} is slow", part=_WHAT[name]),
            Joined([ping, failed]),
            say(
                "move it nearer, or raise {key} above {limit_s}",
                key=_limit_key(name),
                limit_s=f"{limit_s:g}",
            ),
        )
    if failures:
        return finding(
            CHECK,
            "notice",
            say("{part} failed before and works again", part=_WHAT[name]),
            Joined([failed, say("each made a miss")]),
            say(
                "look in the log for what happened; if it was slow, raise {key} above {limit_s}",
                key=_limit_key(name),
                limit_s=f"{limit_s:g}",
            ),
        )
    return None


def _unread(seen: Snapshot) -> Finding:
    rows = [say("{n} in {journal}", n=str(n), journal=name) for name, n in seen.unread.items()]
    return finding(
        CHECK,
        "error",
        say("Policies, labels or requests cannot be read with the encryption key in force"),
        say("rows that are kept and have no effect: {rows}", rows=Joined(rows, ", ")),
        say(
            "set cache.encryption_key to the key they were written with, behind a newer one "
            "(NEW,OLD), or to none if there was none; policies set meanwhile replace them"
        ),
    )


def _all_well(seen: Snapshot, names: list[str]) -> Finding:
    pings = [
        say("{name} in {took} ms", name=name, took=f"{1000 * state.seconds:.1f}")
        for name in names
        if (state := seen.stores.get(name)) is not None and state.seconds
    ]
    kept = [
        say("{n} entries in {store}", n=str(number), store=store)
        for store, number in seen.entries.items()
    ]
    told = [Joined(pings, ", ")] if pings else []
    told += [Joined(kept, ", ")] if kept else []
    return finding(
        CHECK,
        "ok",
        say("Stores and models of the caches answer"),
        Joined([*told, say("no failed call of {names}", names=", ".join(names))]),
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


def _where(seen: Snapshot, name: str) -> Said:
    match name:
        case "redis" | "qdrant":
            url = seen.settings.redis.url if name == "redis" else seen.settings.qdrant.url
            if url in ("embedded", "memory"):
                return say(
                    "{name}.url is {url}: restart the gateway, and see its log", name=name, url=url
                )
            return say(
                "bring up the server that {name}.url names; the gateway finds it by itself",
                name=name,
            )
        case _:
            return say(
                "see the log, and whether {key} can be loaded; it is tried again by itself",
                key="semantic.verifier" if name == "verifier" else "embedder.model",
            )
