"""Whether answers live as long as they are asked for."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent, span
from gateway.doctor.finding import Finding, Severity
from gateway.doctor.snapshot import Snapshot

CHECK = "lifetimes"
LEAST_REPEATS = 10
LOST_SHARE = 0.05  # of what was looked up
LEAST_DEATHS = 100
UNUSED_SHARE = 0.98
STALE_SHARE = 0.5
SOON_S = 7 * 86_400.0
_COVERED = 0.9
_HOUR_S, _MINUTE_S = 3600, 60


def check_lifetimes(seen: Snapshot) -> list[Finding]:
    """Compare times to live with when answers are asked for again."""
    rules = (_expired, _gone, _unused, _stale, _refreshes)
    found = [finding for rule in rules for finding in rule(seen)]
    return found or [_as_needed(seen)]


def _expired(seen: Snapshot) -> Iterator[Finding]:
    """Answers that were asked for again just after they had gone."""
    for intent, ages_s in seen.traffic.repeats.expired_s.items():
        soon = sorted(age_s for age_s in ages_s if age_s <= SOON_S)
        looked_up = seen.traffic.looked_up(intent)
        if len(soon) < LEAST_REPEATS or len(soon) < LOST_SHARE * looked_up:
            continue
        wanted_s = soon[int(_COVERED * (len(soon) - 1))]
        yield _finding(
            "warning",
            f"Answers of {intent} are asked for again after they expired",
            f"{counted(len(soon), 'repeat')} of {counted(looked_up, 'request')} came too late, "
            f"nine in ten within {span(wanted_s)}",
            f'PUT /admin/intents/{intent} {{"ttl": {_rounded(wanted_s)}}} if an answer is still '
            "right by then, or set cache.stale_while_revalidate_s",
        )


def _gone(seen: Snapshot) -> Iterator[Finding]:
    """Answers that should have been there."""
    repeats, looked_up = seen.traffic.repeats, seen.traffic.looked_up()
    if repeats.gone < LEAST_REPEATS or repeats.gone < LOST_SHARE * looked_up:
        return
    removed = seen.counters.by("entries_removed")
    went = [f"{number:.0f} {reason[0]}" for reason, number in removed.items()]
    private = seen.counters.sum("private_answers")
    known = f"removed: {', '.join(went) or 'none'}; held back as private: {private:.0f}"
    often = repeats.often[0] if repeats.often and seen.shows_words else None
    asked = f"; most often {often.misses} times {often.question[:60]!r}" if often else ""
    yield _finding(
        "notice",
        "The same requests miss though they were answered before",
        f"{counted(repeats.gone, 'repeat')} of {counted(looked_up, 'request')} missed before their "
        f"answer's time was over ({known}){asked}",
        "look at one in GET /admin/requests: was it sent with no-cache or a short x-strata-ttl, "
        "invalidated, or private (cache.private)?",
    )


def _unused(seen: Snapshot) -> Iterator[Finding]:
    """Answers that nobody asked for."""
    for intent, died in seen.traffic.repeats.died.items():
        unused = seen.traffic.repeats.unused.get(intent, 0)
        if died < LEAST_DEATHS or unused < UNUSED_SHARE * died:
            continue
        if seen.traffic.repeats.expired_s.get(intent):
            continue
        yield _finding(
            "notice",
            f"Answers of {intent} are kept and never used",
            f"{percent(unused / died)} of the {counted(died, 'answer')} whose time ran out never "
            "served, and none was asked for later",
            f"keep them for less: PUT /admin/intents/{intent} with a smaller ttl, or a table "
            f'[[semantic.intents]] with name = "{intent}" and cacheable = false',
        )


def _stale(seen: Snapshot) -> Iterator[Finding]:
    """Hits that are past their time."""
    refreshed, exact = seen.counters.sum("refreshes"), seen.outcomes.get("exact", 0)
    if exact < LEAST_REPEATS or refreshed < STALE_SHARE * exact:
        return
    yield _finding(
        "warning",
        "Most exact hits are past their time",
        f"{refreshed:.0f} of {counted(exact, 'exact hit')} set off a new answer",
        f"raise cache.ttl_s (now {seen.settings.cache.ttl_s:g}) to the time an answer is right for",
    )


def _refreshes(seen: Snapshot) -> Iterator[Finding]:
    """New answers that were not made."""
    failed = seen.counters.sum("refreshes", "failed")
    if failed:
        yield _finding(
            "warning",
            "Stale answers could not be made anew",
            f"{failed:.0f} of {seen.counters.sum('refreshes'):.0f} refreshes failed",
            "GET /health/ready shows whether the model answers",
        )


def _as_needed(seen: Snapshot) -> Finding:
    repeats = seen.traffic.repeats
    died, unused = sum(repeats.died.values()), sum(repeats.unused.values())
    return Finding(
        check=CHECK,
        severity="ok",
        title="Answers live as long as they are asked for",
        evidence=f"{counted(repeats.num_expired, 'repeat')} came after the end, {repeats.gone} "
        f"found an answer gone early; of {counted(died, 'answer')} whose time ran out "
        f"{died - unused} had served",
    )


def _rounded(seconds: float) -> int:
    """Return a time a little longer, in whole hours above one hour."""
    unit = _HOUR_S if seconds > _HOUR_S else _MINUTE_S
    return int(-(-1.1 * seconds // unit)) * unit


def _finding(severity: Severity, title: str, evidence: str, mend: str) -> Finding:
    return Finding(check=CHECK, severity=severity, title=title, evidence=evidence, mend=mend)
