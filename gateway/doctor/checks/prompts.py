"""What splits the prefixes of the prompts of late."""

from gateway.backends.volatile import VolatileReport, VolatileSpan
from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import Joined, Said, say

CHECK = "prompts"
WARN_SHARE = 0.1  # of all prompt tokens
NAME_SHARE = 0.02
MOST_NAMED = 3
LEAST_REQUESTS = 5
_SETTINGS = {
    "tool_order": say("or set layout.tools to by_name"),
    "retrieval_order": say("or send them as strata.documents and set layout.documents to by_id"),
}


def check_prompts(seen: Snapshot) -> list[Finding]:
    """Name the dearest spans; prompts that differ by nothing but what is asked are well."""
    report = seen.engine.prompts if seen.engine is not None else None
    if report is None or report.requests < LEAST_REQUESTS:
        return [_nothing(seen, report)]
    dear = [span for span in report.spans if _share(span, report) >= NAME_SHARE]
    found = [_finding(seen, span, report) for span in dear[:MOST_NAMED] if span.requests > 1]
    return found or [
        finding(
            CHECK,
            "ok",
            say("Prompts begin alike where they can"),
            say(
                "{prompts} of late: any cache finds {now} of their tokens, with every mend {then}",
                prompts=counted(report.requests, "prompt"),
                now=percent(report.hit_share),
                then=percent(report.reachable_share),
            ),
        )
    ]


def _finding(seen: Snapshot, span: VolatileSpan, report: VolatileReport) -> Finding:
    share = _share(span, report)
    cost = say(
        "it costs {share} of all prompt tokens ({lost} per 1,000 requests), in {requests} of "
        "tenant {tenant}",
        share=percent(share),
        lost=f"{span.lost_per_1000:,}",
        requests=counted(span.requests, "request"),
        tenant=span.tenant,
    )
    what = (span.name or span.cause).replace("_", " ").capitalize()
    more = _SETTINGS.get(span.cause)
    return finding(
        CHECK,
        "warning" if share >= WARN_SHARE else "notice",
        say("{what} in {field} splits prompts", what=Said(what), field=span.field),
        Joined([Said(span.detail) if seen.shows_words else Said(span.cause), cost]),
        Joined([Said(span.mend)] if more is None else [Said(span.mend), more]),
    )


def _nothing(seen: Snapshot, report: VolatileReport | None) -> Finding:
    if report is not None:
        why = say(
            "the local model read {prompts} of late, too few to compare",
            prompts=counted(report.requests, "prompt"),
        )
    elif seen.engine is None:
        why = say("no local model is set")
    else:
        why = say("the local model tells of no prompts")
    return finding(CHECK, "ok", say("No prompts to compare"), why)


def _share(span: VolatileSpan, report: VolatileReport) -> float:
    return span.lost_tokens / max(report.prompt_tokens, 1)
