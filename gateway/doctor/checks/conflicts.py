"""Settings that fight each other, or what the traffic needs."""

from collections.abc import Iterator

from gateway.doctor.finding import Finding, Severity
from gateway.doctor.snapshot import Snapshot

CHECK = "settings"


def check_settings(seen: Snapshot) -> list[Finding]:
    """Look at what is set, beside what has happened under it."""
    rules = (_lifetimes, _no_budget, _no_learning, _records)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [
        Finding(
            check=CHECK,
            severity="ok",
            title="No setting fights another",
            evidence="lifetimes, learning and records looked at",
        )
    ]


def _lifetimes(seen: Snapshot) -> Iterator[Finding]:
    """An answer may be stale for longer than it lives at all."""
    cache = seen.settings.cache
    if cache.stale_while_revalidate_s > 7 * cache.ttl_s:
        yield _finding(
            "warning",
            "Answers are stale for most of the time they are kept",
            f"cache.ttl_s is {cache.ttl_s:g}, cache.stale_while_revalidate_s "
            f"{cache.stale_while_revalidate_s:g}: most exact repeats may get an answer past its "
            "time",
            f"raise cache.ttl_s, or set cache.stale_while_revalidate_s to {cache.ttl_s:g} or less",
        )


def _no_budget(seen: Snapshot) -> Iterator[Finding]:
    """A wish for semantic hits where there can be none."""
    semantic = seen.settings.semantic
    if semantic.enabled and semantic.wrong_hit_budget == 0:
        yield _finding(
            "notice",
            "Only equal texts are semantic hits",
            "semantic.wrong_hit_budget is 0: no wrong answer is allowed, so no other words are",
            "set semantic.wrong_hit_budget to 0.01",
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
            "Nothing is learnt from the traffic",
            f"semantic.shadow_share is {semantic.shadow_share:g}, semantic.gray_share "
            f"{semantic.gray_share:g}, semantic.max_evidence_per_minute "
            f"{semantic.max_evidence_per_minute}",
            "set semantic.gray_share to 1 (it costs no generations), semantic.shadow_share to "
            "0.05 and semantic.max_evidence_per_minute to 30",
        )


def _records(seen: Snapshot) -> Iterator[Finding]:
    """No records, no replay, no review, no diagnosis."""
    requests = seen.settings.requests
    if requests.kept == 0:
        yield _finding(
            "notice",
            "No requests are recorded",
            "requests.kept is 0: no review, no replay, and half of these checks see nothing",
            "set requests.kept to 10000 (and requests.texts to off, if words may not be kept)",
        )


def _finding(severity: Severity, title: str, evidence: str, mend: str) -> Finding:
    return Finding(check=CHECK, severity=severity, title=title, evidence=evidence, mend=mend)
