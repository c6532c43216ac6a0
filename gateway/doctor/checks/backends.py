"""Whether what generates answers does so: the local model, and every upstream."""

from collections.abc import Iterator, Sequence

from gateway.backends.upstream import ReplicaView
from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, Severity, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Said, Saying, say

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
            say("The local model is down"),
            part.detail or say("its process does not answer"),
            say(
                "see the log; a model that does not fit needs a smaller local.kv_tokens or "
                "local.model"
            ),
        )
    elif seen.engine is not None and seen.engine.restarts:
        yield _finding(
            "warning",
            say("The local model's process died"),
            say(
                "restarted {times} since the start; its cached prompts were lost",
                times=counted(seen.engine.restarts, "time"),
            ),
            say("see the log for why; out of memory: lower local.kv_tokens or local.max_sequences"),
        )


def _replicas(seen: Snapshot) -> Iterator[Finding]:
    for name, replicas in seen.replicas.items():
        away = [one for one in replicas if one.state not in ("ready", "drained")]
        if not away:
            continue
        is_all = len(away) == len(replicas)
        yield _finding(
            "error" if is_all else "warning",
            say("Upstream {name} is down" if is_all else "Replicas of {name} are down", name=name),
            Joined([say("{url}: {state}", url=one.url, state=_state(one)) for one in away]),
            say(
                "bring them back: they are probed and found by themselves; meanwhile "
                'fallbacks = {"*" = ["MODEL"]} in its [[upstreams]] table lets another answer'
            ),
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
        kinds = [
            say("{status} {times}", status=status, times=counted(number, "time"))
            for status, number in failed.items()
        ]
        yield _finding(
            "warning",
            say("Upstream {name} fails often", name=name),
            say(
                "{share} of {total} tries: {kinds}",
                share=percent(sum(failed.values()) / total),
                total=f"{total:,.0f}",
                kinds=Joined(kinds, ", "),
            ),
            _mend(name, failed),
        )


def _mend(name: str, failed: dict[str, float]) -> Said:
    worst = max(failed, key=lambda status: failed[status])
    match worst:
        case "429":
            return say(
                "add replicas to upstream {name}, or hold tenants to rates: `strata keys limit`",
                name=name,
            )
        case "401" | "403":
            return say("look at the key that api_key_env of upstream {name} names", name=name)
        case "timeout":
            return say("raise timeout_s of upstream {name}, or add replicas", name=name)
        case "unreachable":
            return say("look at base_url and replicas of upstream {name}", name=name)
        case _:
            return say(
                "look at the log of upstream {name}; retries and fallbacks hide some of it",
                name=name,
            )


def _is_failure(status: str) -> bool:
    if status in ("401", "403", "429"):
        return True
    return not status.startswith((_ANSWERED, _OURS))


def _fallbacks(seen: Snapshot) -> Iterator[Finding]:
    for (asked, used), number in seen.counters.by("upstream_fallbacks").items():
        yield _finding(
            "notice",
            say("{used} answered in place of {asked}", used=used, asked=asked),
            say(
                "{answers} since the start; they are not cached", answers=counted(number, "answer")
            ),
            say("GET /admin/upstreams shows what ails the upstream of {asked}", asked=asked),
        )


def _all_well(seen: Snapshot) -> Finding:
    looked_at = [say("local model {name}", name=seen.engine.model)] if seen.engine else []
    looked_at += [
        say(
            "{name}: {ready} of {all} replicas ready",
            name=name,
            ready=str(_ready(replicas)),
            all=str(len(replicas)),
        )
        for name, replicas in seen.replicas.items()
    ]
    return finding(
        CHECK,
        "ok",
        say("What generates answers does so"),
        Joined(looked_at) if looked_at else say("none is set: hits only"),
    )


def _state(replica: ReplicaView) -> Saying:
    return replica.detail or Said(replica.state)


def _ready(replicas: Sequence[ReplicaView]) -> int:
    return sum(one.state == "ready" for one in replicas)


def _finding(severity: Severity, title: Said, evidence: Saying, mend: Saying) -> Finding:
    return finding(CHECK, severity, title, evidence, mend)
