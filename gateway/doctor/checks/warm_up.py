"""What would be worth computing ahead of use, and keeping."""

from gateway.backends.local_prefix import SharedPrefix
from gateway.doctor.figures import counted
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Saying, say

CHECK = "warm_up"
LEAST_HITS = 20
LEAST_TOKENS = 128
MOST_NAMED = 3
_SHOWN_CHARS = 60


def check_warm_up(seen: Snapshot) -> list[Finding]:
    """Name the prefixes that many requests share and that nothing keeps."""
    engine = seen.engine
    if engine is None:
        return [finding(CHECK, "ok", say("Nothing to warm"), say("no local model is set"))]
    often = [node for node in engine.prefixes if _is_worth_it(node)]
    loose = sorted((node for node in often if not node.pinned), key=_saved, reverse=True)
    evicted = 0 if engine.stats is None else sum(engine.stats.evictions_by_tier.values())
    if loose and (evicted or engine.restarts):
        return [_finding(seen, node, evicted, engine.restarts) for node in loose[:MOST_NAMED]]
    return [
        finding(
            CHECK,
            "ok",
            say("Nothing shared is at risk"),
            say(
                "{often} prefixes with {least} hits or more, {pinned} of them pinned; {blocks} "
                "evicted",
                often=str(len(often)),
                least=str(LEAST_HITS),
                pinned=str(len(often) - len(loose)),
                blocks=counted(evicted, "block"),
            ),
        )
    ]


def _finding(seen: Snapshot, node: SharedPrefix, evicted: int, restarts: int) -> Finding:
    told: list[Saying] = [
        say("{hits} of tenant {tenant}", hits=counted(node.hits, "hit"), tenant=node.tenant)
    ]
    told += [say("{blocks} were evicted", blocks=counted(evicted, "block"))] if evicted else []
    times = counted(restarts, "time")
    told += [say("the model was restarted {times}", times=times)] if restarts else []
    told += [repr(_shown(node.text))] if seen.shows_words else []
    return finding(
        CHECK,
        "notice",
        say("A prefix of {n} tokens that many requests share is not pinned", n=str(node.tokens)),
        Joined(told),
        say(
            "write a request that begins so into a file and run `strata warm FILE --pin`, or name "
            "the file in local.public_prefixes if all tenants may share it"
        ),
    )


def _is_worth_it(node: SharedPrefix) -> bool:
    return node.hits >= LEAST_HITS and node.tokens >= LEAST_TOKENS


def _saved(node: SharedPrefix) -> int:
    return node.hits * node.own_tokens


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
