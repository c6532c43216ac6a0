"""Whether what generates answers does so: the local model, and every upstream."""

from collections.abc import Iterator, Sequence

from gateway.backends.upstream import ReplicaView
from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, Severity
from gateway.doctor.snapshot import Snapshot

CHECK = "backends"
FAILED_SHARE = 0.05
LEAST_REQUESTS = 20
_ANSWERED = "2"
_OURS = "4"


def check_backends(seen: Snapshot) -> list[Finding]:
    """Look at the engine, at replicas, and at how upstreams answered."""
    rules = (_local, _replicas, _answers, _fallbacks)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [_all_well(seen)]


def _local(seen: Snapshot) -> Iterator[Finding]:
    part = seen.health.parts.get("engine")
    if part is not None and part.state == "down":
        yield _finding(
            "error",
            "The local model is down",
            part.detail or "its process does not answer",
            "see the log; a model that does not fit needs a smaller local.kv_tokens or local.model",
        )
    elif seen.engine is not None and seen.engine.restarts:
        yield _finding(
            "warning",
            "The local model's process died",
            f"restarted {counted(seen.engine.restarts, 'time')} since the start; its cached "
            "prompts were lost",
            "see the log for why; out of memory: lower local.kv_tokens or local.max_sequences",
        )


def _replicas(seen: Snapshot) -> Iterator[Finding]:
    for name, replicas in seen.replicas.items():
        away = [one for one in replicas if one.state not in ("ready", "drained")]
        if not away:
            continue
        is_all = len(away) == len(replicas)
        yield _finding(
            "error" if is_all else "warning",
            f"Upstream {name} is down" if is_all else f"Replicas of {name} are down",
            "; ".join(f"{one.url}: {one.detail or one.state}" for one in away),
            "bring them back: they are probed and found by themselves; meanwhile "
            'fallbacks = {"*" = ["MODEL"]} in its [[upstreams]] table lets another answer',
        )


def _answers(seen: Snapshot) -> Iterator[Finding]:
    for name in seen.replicas:
        answers = {
            labels[1]: number
            for labels, number in seen.counters.by("upstream_requests").items()
            if labels[0] == name
        }
        failed = {status: n for status, n in answers.items() if _is_failure(status)}
        total = sum(answers.values())
        if total < LEAST_REQUESTS or sum(failed.values()) < FAILED_SHARE * total:
            continue
        kinds = ", ".join(f"{status} {number:.0f} times" for status, number in failed.items())
        yield _finding(
            "warning",
            f"Upstream {name} fails often",
            f"{percent(sum(failed.values()) / total)} of {total:,.0f} tries: {kinds}",
            _mend(name, failed),
        )


def _mend(name: str, failed: dict[str, float]) -> str:
    worst = max(failed, key=lambda status: failed[status])
    match worst:
        case "429":
            return f"add replicas to upstream {name}, or hold tenants to rates: `strata keys limit`"
        case "401" | "403":
            return f"look at the key that api_key_env of upstream {name} names"
        case "timeout":
            return f"raise timeout_s of upstream {name}, or add replicas"
        case "unreachable":
            return f"look at base_url and replicas of upstream {name}"
        case _:
            return f"look at the log of upstream {name}; retries and fallbacks hide some of it"


def _is_failure(status: str) -> bool:
    if status in ("401", "403", "429"):
        return True
    return not status.startswith((_ANSWERED, _OURS))


def _fallbacks(seen: Snapshot) -> Iterator[Finding]:
    for (asked, used), number in seen.counters.by("upstream_fallbacks").items():
        yield _finding(
            "notice",
            f"{used} answered in place of {asked}",
            f"{counted(number, 'answer')} since the start; they are not cached",
            f"GET /admin/upstreams shows what ails the upstream of {asked}",
        )


def _all_well(seen: Snapshot) -> Finding:
    looked_at = [f"local model {seen.engine.model}"] if seen.engine is not None else []
    looked_at += [
        f"{name}: {_ready(replicas)} of {len(replicas)} replicas ready"
        for name, replicas in seen.replicas.items()
    ]
    return Finding(
        check=CHECK,
        severity="ok",
        title="What generates answers does so",
        evidence="; ".join(looked_at) or "none is set: hits only",
    )


def _ready(replicas: Sequence[ReplicaView]) -> int:
    return sum(one.state == "ready" for one in replicas)


def _finding(severity: Severity, title: str, evidence: str, mend: str) -> Finding:
    return Finding(check=CHECK, severity=severity, title=title, evidence=evidence, mend=mend)
