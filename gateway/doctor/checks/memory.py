"""What is pushed out, of the KV pool, its tiers and the response store; and what was never kept."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent, size
from gateway.doctor.finding import Finding, Severity, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Said, Saying, say

CHECK = "memory"
FULL_SHARE = 0.9
TURNOVERS = 3.0  # how often the pool was evicted whole since the start


def check_memory(seen: Snapshot) -> list[Finding]:
    """Look at every place that can be full."""
    rules = (_context, _pool, _tiers, _redis, _entries, _queue)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [_room_enough(seen)]


def _context(seen: Snapshot) -> Iterator[Finding]:
    """One prompt of full length must fit the pool."""
    engine, kv_tokens = seen.engine, seen.settings.local.kv_tokens
    if engine is not None and kv_tokens < engine.context_tokens:
        yield _finding(
            "warning",
            say("The KV pool is smaller than the model's context"),
            say(
                "local.kv_tokens is {now}, the context of {model} {context}: longer prompts fail, "
                "and little is left to be shared",
                now=str(kv_tokens),
                model=engine.model,
                context=str(engine.context_tokens),
            ),
            say("set local.kv_tokens to {wanted}", wanted=str(2 * engine.context_tokens)),
        )


def _pool(seen: Snapshot) -> Iterator[Finding]:
    stats = seen.engine.stats if seen.engine is not None else None
    if stats is None or not stats.num_blocks:
        return
    evicted = stats.evictions_by_tier.get("device", 0)
    turnovers = evicted / stats.num_blocks
    kept_below = seen.settings.local.host_kv_bytes or seen.settings.local.disk_kv_bytes
    if turnovers >= TURNOVERS and not kept_below:
        now, size_bytes = seen.settings.local.kv_tokens, stats.bytes_by_tier.get("device", 0)
        yield _finding(
            "warning",
            say("The KV pool is too small for what is shared"),
            say(
                "{blocks} were evicted since the start, {turnovers} times the pool of {now} tokens "
                "({size})",
                blocks=counted(evicted, "block"),
                turnovers=f"{turnovers:.0f}",
                now=str(now),
                size=size(size_bytes),
            ),
            say(
                "set local.kv_tokens to {twice} ({size}), or set local.host_kv_bytes to {host}",
                twice=str(2 * now),
                size=size(2 * size_bytes),
                host=str(4 * size_bytes),
            ),
        )


def _tiers(seen: Snapshot) -> Iterator[Finding]:
    stats = seen.engine.stats if seen.engine is not None else None
    if stats is None:
        return
    for tier, failed in stats.failures_by_tier.items():
        if failed:
            where = "local.kv_dir" if tier == "disk" else f"local.{tier}_kv_bytes"
            yield _finding(
                "warning",
                say("The {tier} tier could not keep or give KV", tier=Said(tier)),
                say("{blocks} failed since the start", blocks=counted(failed, "block")),
                say("see the log; look at the room and the rights of {where}", where=where),
            )
    for tier, broken in stats.broken_by_tier.items():
        if broken:
            yield _finding(
                "warning",
                say("KV files were damaged"),
                say(
                    "{files} of the {tier} tier were dropped; their KV is computed anew",
                    files=counted(broken, "file"),
                    tier=Said(tier),
                ),
                say("check the disk under local.kv_dir"),
            )


def _redis(seen: Snapshot) -> Iterator[Finding]:
    room = seen.room
    if room is None:
        return
    is_own = seen.settings.redis.url == "embedded"
    key: Saying = "cache.max_memory_bytes" if is_own else say("the server's maxmemory")
    if room.drops_entries:
        yield _finding(
            "warning",
            say("The response store drops entries by itself"),
            say(
                "its maxmemory-policy is not noeviction; {keys} went so. With an index that is "
                "dropped, invalidation by tag misses entries",
                keys=counted(room.num_dropped, "key"),
            ),
            say("CONFIG SET maxmemory-policy noeviction; Strata makes room itself"),
        )
    if room.limit_bytes and room.used_bytes > FULL_SHARE * room.limit_bytes:
        yield _finding(
            "warning",
            say("The response store is nearly full"),
            say(
                "{used} of {limit} ({share}), {entries} entries; when it is full, those nearest to "
                "their end go",
                used=size(room.used_bytes),
                limit=size(room.limit_bytes),
                share=percent(room.used_bytes / room.limit_bytes),
                entries=f"{seen.entries.get('redis', 0):,}",
            ),
            say(
                "set {key} to {twice}, or shorten cache.ttl_s",
                key=key,
                twice=str(2 * room.limit_bytes),
            ),
        )


def _entries(seen: Snapshot) -> Iterator[Finding]:
    most, gone = seen.settings.cache.max_entries, seen.counters.sum("entries_removed", "size")
    kept = seen.entries.get("redis", 0)
    lost = seen.traffic.repeats.gone
    if most and gone and lost:
        yield _finding(
            "warning",
            say("Answers make room and are asked for again"),
            say(
                "cache.max_entries is {most}, {kept} are kept, {gone} went since the start; "
                "{repeats} missed before their time was over",
                most=str(most),
                kept=str(kept),
                gone=f"{gone:.0f}",
                repeats=counted(lost, "repeat"),
            ),
            say("set cache.max_entries to {twice}, or to 0 for no limit", twice=str(2 * most)),
        )


def _queue(seen: Snapshot) -> Iterator[Finding]:
    dropped = seen.counters.sum("write_back_dropped")
    if dropped:
        queue = seen.settings.cache.write_queue
        yield _finding(
            "warning",
            say("Answers were made and not kept"),
            say(
                "{answers} found the write queue of {queue} full",
                answers=counted(dropped, "answer"),
                queue=str(queue),
            ),
            say(
                "look at the store's latency, or set cache.write_queue to {wanted}",
                wanted=str(4 * queue),
            ),
        )


def _room_enough(seen: Snapshot) -> Finding:
    looked_at = []
    if seen.engine is not None and seen.engine.stats is not None:
        stats = seen.engine.stats
        looked_at.append(
            say(
                "{free} of {all} KV blocks free, {evicted} evicted",
                free=str(stats.blocks_by_state.get("free", 0)),
                all=str(stats.num_blocks),
                evicted=str(sum(stats.evictions_by_tier.values())),
            )
        )
    if seen.room is not None:
        used, limit = size(seen.room.used_bytes), size(seen.room.limit_bytes)
        looked_at.append(
            say("response store: {used} of {limit}", used=used, limit=limit)
            if seen.room.limit_bytes
            else say("response store: {used}", used=used)
        )
    looked_at.append(say("no answer dropped before it was kept"))
    return finding(CHECK, "ok", say("There is room enough"), Joined(looked_at))


def _finding(severity: Severity, title: Said, evidence: Saying, mend: Saying) -> Finding:
    return finding(CHECK, severity, title, evidence, mend)
