"""Whether answers live as long as they are asked for."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent, span
from gateway.doctor.finding import Finding, Severity, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Said, Saying, say

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
            say("Answers of {intent} are asked for again after they expired", intent=intent),
            say(
                "{repeats} of {requests} came too late, nine in ten within {time}",
                repeats=counted(len(soon), "repeat"),
                requests=counted(looked_up, "request"),
                time=span(wanted_s),
            ),
            say(
                'PUT /admin/intents/{intent} {{"ttl": {ttl}}} if an answer is still right by then, '
                "or set cache.stale_while_revalidate_s",
                intent=intent,
                ttl=str(_rounded(wanted_s)),
            ),
        )


def _gone(seen: Snapshot) -> Iterator[Finding]:
    """Answers that should have been there."""
    repeats, looked_up = seen.traffic.repeats, seen.traffic.looked_up()
    if repeats.gone < LEAST_REPEATS or repeats.gone < LOST_SHARE * looked_up:
        return
    removed = seen.counters.by("entries_removed")
    went = [f"{number:.0f} {reason[0]}" for reason, number in removed.items()]
    said: list[Saying] = [
        say(
            "{repeats} of {requests} missed before their answer's time was over (removed: "
            "{removed}; held back as private: {private})",
            repeats=counted(repeats.gone, "repeat"),
            requests=counted(looked_up, "request"),
            removed=Joined(went, ", ") if went else say("none"),
            private=f"{seen.counters.sum('private_answers'):.0f}",
        )
    ]
    if repeats.often and seen.shows_words:
        often = repeats.often[0]
        times, question = counted(often.misses, "time"), repr(often.question[:60])
        said.append(say("most often {times} {question}", times=times, question=question))
    yield _finding(
        "notice",
        say("The same requests miss though they were answered before"),
        Joined(said),
        say(
            "look at one in GET /admin/requests: was it sent with no-cache or a short "
            "x-strata-ttl, invalidated, or private (cache.private)?"
        ),
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
            say("Answers of {intent} are kept and never used", intent=intent),
            say(
                "{share} of the {answers} whose time ran out never served, and none was asked for "
                "later",
                share=percent(unused / died),
                answers=counted(died, "answer"),
            ),
            say(
                "keep them for less: PUT /admin/intents/{intent} with a smaller ttl, or a table "
                '[[semantic.intents]] with name = "{intent}" and cacheable = false',
                intent=intent,
            ),
        )


def _stale(seen: Snapshot) -> Iterator[Finding]:
    """Hits that are past their time."""
    refreshed, exact = seen.counters.sum("refreshes"), seen.outcomes.get("exact", 0)
    if exact < LEAST_REPEATS or refreshed < STALE_SHARE * exact:
        return
    yield _finding(
        "warning",
        say("Most exact hits are past their time"),
        say(
            "{refreshed} of {hits} set off a new answer",
            refreshed=f"{refreshed:.0f}",
            hits=counted(exact, "exact hit"),
        ),
        say(
            "raise cache.ttl_s (now {ttl_s}) to the time an answer is right for",
            ttl_s=f"{seen.settings.cache.ttl_s:g}",
        ),
    )


def _refreshes(seen: Snapshot) -> Iterator[Finding]:
    """New answers that were not made."""
    failed = seen.counters.sum("refreshes", "failed")
    if failed:
        yield _finding(
            "warning",
            say("Stale answers could not be made anew"),
            say(
                "{failed} of {all} refreshes failed",
                failed=f"{failed:.0f}",
                all=f"{seen.counters.sum('refreshes'):.0f}",
            ),
            say("GET /health/ready shows whether the model answers"),
        )


def _as_needed(seen: Snapshot) -> Finding:
    repeats = seen.traffic.repeats
    died, unused = sum(repeats.died.values()), sum(repeats.unused.values())
    return finding(
        CHECK,
        "ok",
        say("Answers live as long as they are asked for"),
        say(
            "{late} came after the end, {gone} found an answer gone early; of {answers} whose time "
            "ran out {used} had served",
            late=counted(repeats.num_expired, "repeat"),
            gone=str(repeats.gone),
            answers=counted(died, "answer"),
            used=str(died - unused),
        ),
    )


def _rounded(seconds: float) -> int:
    """Return a time a little longer, in whole hours above one hour."""
    unit = _HOUR_S if seconds > _HOUR_S else _MINUTE_S
    return int(-(-1.1 * seconds // unit)) * unit


def _finding(severity: Severity, title: Said, evidence: Saying, mend: Saying) -> Finding:
    return finding(CHECK, severity, title, evidence, mend)
