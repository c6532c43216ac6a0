"""Whether the layers answer what the traffic lets them answer."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Engine, Snapshot

CHECK = "hit_shares"
LEAST_REQUESTS = 50
LEAST_PROMPTS = 20
LOST_SHARE = 0.1  # of prompt tokens that were there to be found
HISTORY_SHARE = 0.3
NEAR_SHARE = 0.1  # of an intent's requests
BYPASS_SHARE = 0.2


def check_hit_shares(seen: Snapshot) -> list[Finding]:
    """Compare what was found with what an unbounded cache of the same traffic finds."""
    rules = (_prefix, _histories, _near, _bypassed, _no_semantic)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [_as_expected(seen)]


def _prefix(seen: Snapshot) -> Iterator[Finding]:
    """KV that prompts shared, and that was not there."""
    engine = seen.engine
    if engine is None or engine.prompts is None or engine.prompts.requests < LEAST_PROMPTS:
        return
    found, allowed = seen.traffic.prompts, engine.prompts.hit_share
    if found.requests < LEAST_PROMPTS or allowed - found.share < LOST_SHARE:
        return
    yield Finding(
        check=CHECK,
        severity="warning",
        title="Prompts share more than the prefix cache finds",
        evidence=f"{percent(found.share)} of the tokens of {counted(found.requests, 'prompt')} "
        f"were cached; a cache without bounds finds {percent(allowed)}",
        mend=_prefix_mend(seen, engine),
    )


def _prefix_mend(seen: Snapshot, engine: Engine) -> str:
    local = seen.settings.local
    if local.prefix_caching == "off":
        return "set local.prefix_caching to on"
    evicted = 0 if engine.stats is None else sum(engine.stats.evictions_by_tier.values())
    if evicted:
        return (
            f"set local.kv_tokens to {2 * local.kv_tokens} (now {local.kv_tokens}), or keep KV "
            "beyond the pool: local.host_kv_bytes, local.disk_kv_bytes"
        )
    return (
        "nothing was evicted, so the cache was reset, the model restarted, or alike prompts came "
        "at once: `strata warm FILE --pin` after a start computes what is shared ahead of use"
    )


def _histories(seen: Snapshot) -> Iterator[Finding]:
    """Chats and agents whose prompts do not begin as their last turn did."""
    prompts = seen.engine.prompts if seen.engine is not None else None
    for kind in prompts.kinds if prompts is not None else ():
        lost = kind.due_share - kind.hit_share
        if kind.requests < LEAST_PROMPTS or lost < HISTORY_SHARE:
            continue
        yield Finding(
            check=CHECK,
            severity="warning",
            title=f"{kind.kind.capitalize()} prompts do not begin as the turn before did",
            evidence=f"{percent(kind.due_share)} of the tokens of "
            f"{counted(kind.requests, 'prompt')} were sent by earlier turns, and any cache finds "
            f"{percent(kind.hit_share)}",
            mend="only append to a conversation, and keep its system prompt and tools as they "
            "were; `strata lint` names the place, `gateway.layout.ChatManager` does it",
        )


def _near(seen: Snapshot) -> Iterator[Finding]:
    """Misses that only a threshold kept from being hits."""
    for intent, near in seen.traffic.near.items():
        looked_up = seen.traffic.looked_up(intent)
        if looked_up < LEAST_REQUESTS or near < NEAR_SHARE * looked_up:
            continue
        hits = seen.traffic.count("semantic", intent)
        yield Finding(
            check=CHECK,
            severity="notice",
            title=f"The threshold of {intent} turns many candidates away",
            evidence=f"of {counted(looked_up, 'request')} {percent(near / looked_up)} were misses "
            f"by the threshold alone; {percent(hits / looked_up)} were semantic hits",
            mend=f"judge them (GET /admin/review?intent={intent}) and let labels lower it; try "
            f"a threshold first: POST /admin/intents/{intent}/replay",
        )


def _bypassed(seen: Snapshot) -> Iterator[Finding]:
    """Requests that the caches were told, or made, to leave alone."""
    traffic = seen.traffic
    bypassed = traffic.count("bypass")
    if traffic.requests < LEAST_REQUESTS or bypassed < BYPASS_SHARE * traffic.requests:
        return
    hot = traffic.skips.get("temperature", 0)
    most = seen.settings.cache.max_temperature
    told = traffic.skips.get("cache-control", 0)
    if hot >= told and hot:
        yield Finding(
            check=CHECK,
            severity="warning",
            title="Many requests are too hot for the caches",
            evidence=f"{percent(hot / traffic.requests)} of {counted(traffic.requests, 'request')} "
            f"bypassed: their temperature is above cache.max_temperature ({most:g})",
            mend="send a lower temperature where one answer will do, or set "
            "cache.max_temperature to 2",
        )
    elif told:
        yield Finding(
            check=CHECK,
            severity="notice",
            title="Many clients keep the caches out",
            evidence=f"{percent(told / traffic.requests)} of "
            f"{counted(traffic.requests, 'request')} said no-cache and no-store",
            mend="send `Cache-Control: no-cache` alone to have a new answer that is kept",
        )


def _no_semantic(seen: Snapshot) -> Iterator[Finding]:
    """Requests whose similarity cannot be judged as they are."""
    traffic = seen.traffic
    too_long = traffic.skips.get("window", 0)
    if traffic.requests < LEAST_REQUESTS or too_long < NEAR_SHARE * traffic.requests:
        return
    yield Finding(
        check=CHECK,
        severity="notice",
        title="Many questions are too long to be compared",
        evidence=f"{percent(too_long / traffic.requests)} of "
        f"{counted(traffic.requests, 'request')} are longer than the embedder reads and have "
        "exact hits only",
        mend='name the question by itself: `strata: {"query": …, "context": [document ids]}` in '
        "the body",
    )


def _as_expected(seen: Snapshot) -> Finding:
    traffic = seen.traffic
    looked_up = traffic.looked_up()
    if looked_up < LEAST_REQUESTS:
        return Finding(
            check=CHECK,
            severity="ok",
            title="Too little traffic to judge hit shares by",
            evidence=f"{counted(looked_up, 'recorded request')} looked up; {LEAST_REQUESTS} are "
            "enough",
        )
    shares = [f"{percent(traffic.count(o) / looked_up)} {o}" for o in ("exact", "semantic", "miss")]
    by_intent = [
        f"{intent} {percent((counts['exact'] + counts['semantic']) / total)}"
        for intent, counts in sorted(traffic.outcomes.items())
        if (total := traffic.looked_up(intent)) >= LEAST_REQUESTS
    ]
    prompts = traffic.prompts
    cached = f"; {percent(prompts.share)} of prompt tokens were cached" if prompts.tokens else ""
    report = seen.engine.prompts if seen.engine is not None else None
    kinds = [
        f"{kind.kind} prompts share {percent(kind.hit_share)}"
        for kind in (report.kinds if report is not None else ())
    ]
    return Finding(
        check=CHECK,
        severity="ok",
        title="Hits are what the traffic allows",
        evidence=f"{counted(looked_up, 'request')}: {', '.join(shares)}"
        + (f"; hits by intent: {', '.join(by_intent)}" if by_intent else "")
        + "".join([cached, *(f", {kind}" for kind in kinds)]),
    )
