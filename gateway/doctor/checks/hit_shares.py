"""Whether the layers answer what the traffic lets them answer."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Engine, Snapshot
from gateway.said import Joined, Said, say

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
    yield finding(
        CHECK,
        "warning",
        say("Prompts share more than the prefix cache finds"),
        say(
            "{share} of the tokens of {prompts} were cached; a cache without bounds finds {most}",
            share=percent(found.share),
            prompts=counted(found.requests, "prompt"),
            most=percent(allowed),
        ),
        _prefix_mend(seen, engine),
    )


def _prefix_mend(seen: Snapshot, engine: Engine) -> Said:
    local = seen.settings.local
    if local.prefix_caching == "off":
        return say("set local.prefix_caching to on")
    evicted = 0 if engine.stats is None else sum(engine.stats.evictions_by_tier.values())
    if evicted:
        return say(
            "set local.kv_tokens to {twice} (now {now}), or keep KV beyond the pool: "
            "local.host_kv_bytes, local.disk_kv_bytes",
            twice=str(2 * local.kv_tokens),
            now=str(local.kv_tokens),
        )
    return say(
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
        yield finding(
            CHECK,
            "warning",
            say(
                "{kind} prompts do not begin as the turn before did",
                kind=Said(kind.kind.capitalize()),
            ),
            say(
                "{due} of the tokens of {prompts} were sent by earlier turns, and any cache finds "
                "{share}",
                due=percent(kind.due_share),
                prompts=counted(kind.requests, "prompt"),
                share=percent(kind.hit_share),
            ),
            say(
                "only append to a conversation, and keep its system prompt and tools as they "
                "were; `strata lint` names the place, `gateway.layout.ChatManager` does it"
            ),
        )


def _near(seen: Snapshot) -> Iterator[Finding]:
    """Misses that only a threshold kept from being hits."""
    for intent, near in seen.traffic.near.items():
        looked_up = seen.traffic.looked_up(intent)
        if looked_up < LEAST_REQUESTS or near < NEAR_SHARE * looked_up:
            continue
        hits = seen.traffic.count("semantic", intent)
        yield finding(
            CHECK,
            "notice",
            say("The threshold of {intent} turns many candidates away", intent=intent),
            say(
                "of {requests} {near} were misses by the threshold alone; {hits} were semantic "
                "hits",
                requests=counted(looked_up, "request"),
                near=percent(near / looked_up),
                hits=percent(hits / looked_up),
            ),
            say(
                "judge them (GET /admin/review?intent={intent}) and let labels lower it; try a "
                "threshold first: POST /admin/intents/{intent}/replay",
                intent=intent,
            ),
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
        yield finding(
            CHECK,
            "warning",
            say("Many requests are too hot for the caches"),
            say(
                "{share} of {requests} bypassed: their temperature is above "
                "cache.max_temperature ({most})",
                share=percent(hot / traffic.requests),
                requests=counted(traffic.requests, "request"),
                most=f"{most:g}",
            ),
            say(
                "send a lower temperature where one answer will do, or set "
                "cache.max_temperature to 2"
            ),
        )
    elif told:
        yield finding(
            CHECK,
            "notice",
            say("Many clients keep the caches out"),
            say(
                "{share} of {requests} said no-cache and no-store",
                share=percent(told / traffic.requests),
                requests=counted(traffic.requests, "request"),
            ),
            say("send `Cache-Control: no-cache` alone to have a new answer that is kept"),
        )


def _no_semantic(seen: Snapshot) -> Iterator[Finding]:
    """Requests whose similarity cannot be judged as they are."""
    traffic = seen.traffic
    too_long = traffic.skips.get("window", 0)
    if traffic.requests < LEAST_REQUESTS or too_long < NEAR_SHARE * traffic.requests:
        return
    yield finding(
        CHECK,
        "notice",
        say("Many questions are too long to be compared"),
        say(
            "{share} of {requests} are longer than the embedder reads and have exact hits only",
            share=percent(too_long / traffic.requests),
            requests=counted(traffic.requests, "request"),
        ),
        say(
            'name the question by itself: `strata: {"query": …, "context": [document ids]}` in '
            "the body"
        ),
    )


def _as_expected(seen: Snapshot) -> Finding:
    traffic = seen.traffic
    looked_up = traffic.looked_up()
    if looked_up < LEAST_REQUESTS:
        return finding(
            CHECK,
            "ok",
            say("Too little traffic to judge hit shares by"),
            say(
                "{requests} looked up; {enough} are enough",
                requests=counted(looked_up, "recorded request"),
                enough=str(LEAST_REQUESTS),
            ),
        )
    return finding(
        CHECK,
        "ok",
        say("Hits are what the traffic allows"),
        Joined([_layers(seen, looked_up), *_by_intent(seen), *_prompts(seen)]),
    )


def _layers(seen: Snapshot, looked_up: int) -> Said:
    shares = {
        outcome: percent(seen.traffic.count(outcome) / looked_up)
        for outcome in ("exact", "semantic", "miss")
    }
    requests = counted(looked_up, "request")
    return say(
        "{requests}: {exact} exact, {semantic} semantic, {miss} miss", requests=requests, **shares
    )


def _by_intent(seen: Snapshot) -> Iterator[Said]:
    shares = [
        f"{intent} {percent((counts['exact'] + counts['semantic']) / total)}"
        for intent, counts in sorted(seen.traffic.outcomes.items())
        if (total := seen.traffic.looked_up(intent)) >= LEAST_REQUESTS
    ]
    if shares:
        yield say("hits by intent: {shares}", shares=Joined(shares, ", "))


def _prompts(seen: Snapshot) -> Iterator[Said]:
    if seen.traffic.prompts.tokens:
        yield say("{share} of prompt tokens were cached", share=percent(seen.traffic.prompts.share))
    report = seen.engine.prompts if seen.engine is not None else None
    for kind in report.kinds if report is not None else ():
        yield say(
            "{kind} prompts share {share}", kind=Said(kind.kind), share=percent(kind.hit_share)
        )
