"""What would be worth computing ahead of use, and keeping."""

from gateway.backends.local_prefix import SharedPrefix
from gateway.doctor.figures import counted
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

CHECK = "warm_up"
LEAST_HITS = 20
LEAST_TOKENS = 128
MOST_NAMED = 3
_SHOWN_CHARS = 60


def check_warm_up(seen: Snapshot) -> list[Finding]:
    """Name the prefixes that many requests share and that nothing keeps."""
    engine = seen.engine
    if engine is None:
        evidence = "no local model is set"
        return [Finding(check=CHECK, severity="ok", title="Nothing to warm", evidence=evidence)]
    often = [node for node in engine.prefixes if _is_worth_it(node)]
    loose = sorted((node for node in often if not node.pinned), key=_saved, reverse=True)
    evicted = 0 if engine.stats is None else sum(engine.stats.evictions_by_tier.values())
    if loose and (evicted or engine.restarts):
        return [_finding(seen, node, evicted, engine.restarts) for node in loose[:MOST_NAMED]]
    return [
        Finding(
            check=CHECK,
            severity="ok",
            title="Nothing shared is at risk",
            evidence=f"{len(often)} prefixes with "
            f"{LEAST_HITS} hits or more, {len(often) - len(loose)} of them pinned; "
            f"{counted(evicted, 'block')} evicted",
        )
    ]


def _finding(seen: Snapshot, node: SharedPrefix, evicted: int, restarts: int) -> Finding:
    lost = [f"{counted(evicted, 'block')} were evicted"] if evicted else []
    lost += [f"the model was restarted {restarts} times"] if restarts else []
    return Finding(
        check=CHECK,
        severity="notice",
        title=f"A prefix of {node.tokens} tokens that many requests share is not pinned",
        evidence=f"{counted(node.hits, 'hit')} of tenant {node.tenant}, while "
        f"{' and '.join(lost)}" + (f": {_shown(node.text)!r}" if seen.shows_words else ""),
        mend="write a request that begins so into a file and run `strata warm FILE --pin`, or name "
        "the file in local.public_prefixes if all tenants may share it",
    )


def _is_worth_it(node: SharedPrefix) -> bool:
    return node.hits >= LEAST_HITS and node.tokens >= LEAST_TOKENS


def _saved(node: SharedPrefix) -> int:
    return node.hits * node.own_tokens


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 1] + "…"
