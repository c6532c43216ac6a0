"""What is pushed out, of the KV pool, its tiers and the response store; and what was never kept."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent, size
from gateway.doctor.finding import Finding, Severity
from gateway.doctor.snapshot import Snapshot

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
            "The KV pool is smaller than the model's context",
            f"local.kv_tokens is {kv_tokens}, the context of {engine.model} "
            f"{engine.context_tokens}: longer prompts fail, and little is left to be shared",
            f"set local.kv_tokens to {2 * engine.context_tokens}",
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
            "The KV pool is too small for what is shared",
            f"{counted(evicted, 'block')} were evicted since the start, {turnovers:.0f} times the "
            f"pool of {now} tokens ({size(size_bytes)})",
            f"set local.kv_tokens to {2 * now} ({size(2 * size_bytes)}), or set "
            f"local.host_kv_bytes to {4 * size_bytes}",
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
                f"The {tier} tier could not keep or give KV",
                f"{counted(failed, 'block')} failed since the start",
                f"see the log; look at the room and the rights of {where}",
            )
    for tier, broken in stats.broken_by_tier.items():
        if broken:
            yield _finding(
                "warning",
                "KV files were damaged",
                f"{counted(broken, 'file')} of the {tier} tier were dropped; their KV is "
                "computed anew",
                "check the disk under local.kv_dir",
            )


def _redis(seen: Snapshot) -> Iterator[Finding]:
    room = seen.room
    if room is None:
        return
    is_own = seen.settings.redis.url == "embedded"
    key = "cache.max_memory_bytes" if is_own else "the server's maxmemory"
    if room.drops_entries:
        yield _finding(
            "warning",
            "The response store drops entries by itself",
            f"its maxmemory-policy is not noeviction; {counted(room.num_dropped, 'key')} went so. "
            "With an index that is dropped, invalidation by tag misses entries",
            "CONFIG SET maxmemory-policy noeviction; Strata makes room itself",
        )
    if room.limit_bytes and room.used_bytes > FULL_SHARE * room.limit_bytes:
        yield _finding(
            "warning",
            "The response store is nearly full",
            f"{size(room.used_bytes)} of {size(room.limit_bytes)} "
            f"({percent(room.used_bytes / room.limit_bytes)}), "
            f"{seen.entries.get('redis', 0):,} entries; when "
            "it is full, those nearest to their end go",
            f"set {key} to {2 * room.limit_bytes}, or shorten cache.ttl_s",
        )


def _entries(seen: Snapshot) -> Iterator[Finding]:
    most, gone = seen.settings.cache.max_entries, seen.counters.sum("entries_removed", "size")
    kept = seen.entries.get("redis", 0)
    lost = seen.traffic.repeats.gone
    if most and gone and lost:
        yield _finding(
            "warning",
            "Answers make room and are asked for again",
            f"cache.max_entries is {most}, {kept} are kept, {gone:.0f} went since the start; "
            f"{counted(lost, 'repeat')} missed before their time was over",
            f"set cache.max_entries to {2 * most}, or to 0 for no limit",
        )


def _queue(seen: Snapshot) -> Iterator[Finding]:
    dropped = seen.counters.sum("write_back_dropped")
    if dropped:
        queue = seen.settings.cache.write_queue
        yield _finding(
            "warning",
            "Answers were made and not kept",
            f"{counted(dropped, 'answer')} found the write queue of {queue} full",
            f"look at the store's latency, or set cache.write_queue to {4 * queue}",
        )


def _room_enough(seen: Snapshot) -> Finding:
    looked_at = []
    if seen.engine is not None and seen.engine.stats is not None:
        stats = seen.engine.stats
        free = stats.blocks_by_state.get("free", 0)
        looked_at.append(
            f"{free} of {stats.num_blocks} KV blocks free, "
            f"{sum(stats.evictions_by_tier.values())} evicted"
        )
    if seen.room is not None:
        of = f" of {size(seen.room.limit_bytes)}" if seen.room.limit_bytes else ""
        looked_at.append(f"response store: {size(seen.room.used_bytes)}{of}")
    looked_at.append("no answer dropped before it was kept")
    return Finding(
        check=CHECK, severity="ok", title="There is room enough", evidence="; ".join(looked_at)
    )


def _finding(severity: Severity, title: str, evidence: str, mend: str) -> Finding:
    return Finding(check=CHECK, severity=severity, title=title, evidence=evidence, mend=mend)
