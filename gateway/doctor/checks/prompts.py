"""What splits the prefixes of the prompts of late."""

from gateway.backends.volatile import VolatileReport, VolatileSpan
from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

CHECK = "prompts"
WARN_SHARE = 0.1  # of all prompt tokens
NAME_SHARE = 0.02
MOST_NAMED = 3
LEAST_REQUESTS = 5
_SETTINGS = {
    "tool_order": "; or set layout.tools to by_name",
    "retrieval_order": "; or send them as strata.documents and set layout.documents to by_id",
}


def check_prompts(seen: Snapshot) -> list[Finding]:
    """Name the dearest spans; prompts that differ by nothing but what is asked are well."""
    report = seen.engine.prompts if seen.engine is not None else None
    if report is None or report.requests < LEAST_REQUESTS:
        return [_nothing(seen, report)]
    dear = [span for span in report.spans if _share(span, report) >= NAME_SHARE]
    found = [_finding(seen, span, report) for span in dear[:MOST_NAMED] if span.requests > 1]
    return found or [
        Finding(
            check=CHECK,
            severity="ok",
            title="Prompts begin alike where they can",
            evidence=f"{counted(report.requests, 'prompt')} of late: any cache finds "
            f"{percent(report.hit_share)} of their tokens, with every mend "
            f"{percent(report.reachable_share)}",
        )
    ]


def _finding(seen: Snapshot, span: VolatileSpan, report: VolatileReport) -> Finding:
    share, said = _share(span, report), span.detail if seen.shows_words else span.cause
    return Finding(
        check=CHECK,
        severity="warning" if share >= WARN_SHARE else "notice",
        title=f"{(span.name or span.cause).replace('_', ' ').capitalize()} in {span.field} "
        "splits prompts",
        evidence=f"{said}; it costs {percent(share)} of all prompt tokens "
        f"({span.lost_per_1000:,} per 1,000 requests), in {counted(span.requests, 'request')} of "
        f"tenant {span.tenant}",
        mend=span.mend + _SETTINGS.get(span.cause, ""),
    )


def _nothing(seen: Snapshot, report: VolatileReport | None) -> Finding:
    why = "no local model is set" if seen.engine is None else "the local model read"
    if report is not None:
        why += f" {counted(report.requests, 'prompt')} of late, too few to compare"
    return Finding(check=CHECK, severity="ok", title="No prompts to compare", evidence=why)


def _share(span: VolatileSpan, report: VolatileReport) -> float:
    return span.lost_tokens / max(report.prompt_tokens, 1)
