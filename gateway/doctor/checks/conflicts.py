"""Settings that fight each other, or what the traffic needs."""

from collections.abc import Iterator

from gateway.doctor.finding import Finding, Severity, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Said, Saying, say

CHECK = "settings"


def check_settings(seen: Snapshot) -> list[Finding]:
    """Look at what is set, beside what has happened under it."""
    rules = (_lifetimes, _no_budget, _no_learning, _records)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [
        finding(
            CHECK,
            "ok",
            say("No setting fights another"),
            say("lifetimes, learning and records looked at"),
        )
    ]


def _lifetimes(seen: Snapshot) -> Iterator[Finding]:
    """An answer may be stale for longer than it lives at all."""
    cache = seen.settings.cache
    if cache.stale_while_revalidate_s > 7 * cache.ttl_s:
        yield _finding(
            "warning",
            say("Answers are stale for most of the time they are kept"),
            say(
                "cache.ttl_s is {ttl_s}, cache.stale_while_revalidate_s {stale_s}: most exact "
                "repeats may get an answer past its time",
                ttl_s=f"{cache.ttl_s:g}",
                stale_s=f"{cache.stale_while_revalidate_s:g}",
            ),
            say(
                "raise cache.ttl_s, or set cache.stale_while_revalidate_s to {ttl_s} or less",
                ttl_s=f"{cache.ttl_s:g}",
            ),
        )


def _no_budget(seen: Snapshot) -> Iterator[Finding]:
    """A wish for semantic hits where there can be none."""
    semantic = seen.settings.semantic
    if semantic.enabled and semantic.wrong_hit_budget == 0:
        yield _finding(
            "notice",
            say("Only equal texts are semantic hits"),
            say(
                "semantic.wrong_hit_budget is 0: no wrong answer is allowed, so no other words are"
            ),
            say("set semantic.wrong_hit_budget to 0.01"),
        )


def _no_learning(seen: Snapshot) -> Iterator[Finding]:
    """Nothing that could tell whether hits are right."""
    semantic = seen.settings.semantic
    hits = seen.outcomes.get("semantic", 0)
    asks_nothing = semantic.shadow_share == 0 and semantic.gray_share == 0
    is_off = asks_nothing or semantic.max_evidence_per_minute == 0
    if semantic.enabled and is_off:
        yield _finding(
            "warning" if hits else "notice",
            say("Nothing is learnt from the traffic"),
            say(
                "semantic.shadow_share is {shadow}, semantic.gray_share {gray}, "
                "semantic.max_evidence_per_minute {most}",
                shadow=f"{semantic.shadow_share:g}",
                gray=f"{semantic.gray_share:g}",
                most=str(semantic.max_evidence_per_minute),
            ),
            say(
                "set semantic.gray_share to 1 (it costs no generations), semantic.shadow_share to "
                "0.05 and semantic.max_evidence_per_minute to 30"
            ),
        )


def _records(seen: Snapshot) -> Iterator[Finding]:
    """No records, no replay, no review, no diagnosis."""
    requests = seen.settings.requests
    if requests.kept == 0:
        yield _finding(
            "notice",
            say("No requests are recorded"),
            say("requests.kept is 0: no review, no replay, and half of these checks see nothing"),
            say("set requests.kept to 10000 (and requests.texts to off, if words may not be kept)"),
        )


def _finding(severity: Severity, title: Said, evidence: Saying, mend: Saying) -> Finding:
    return finding(CHECK, severity, title, evidence, mend)
