"""What the caches decided, as response headers."""

from gateway.call import CacheReport

Header = tuple[bytes, bytes]


def cache_headers(report: CacheReport) -> list[Header]:
    """Return an answer's ``x-strata-*`` headers, Age, and what is left of the tenant's limits."""
    judgement = report.judgement
    headers = [(b"x-strata-cache", report.outcome.encode())]
    if judgement.intent is not None:
        headers.append((b"x-strata-intent", judgement.intent.encode()))
    for name, value in (
        (b"x-strata-threshold", judgement.threshold),
        (b"x-strata-score", judgement.score),
        (b"x-strata-similarity", judgement.similarity),
    ):
        if value is not None:
            headers.append((name, b"%.6g" % value))
    if report.entry_id is not None:
        headers.append((b"x-strata-entry", report.entry_id.encode()))
    if report.age_s is not None:
        headers.append((b"age", b"%d" % max(0, int(report.age_s))))
    if report.stale_s is not None:  # RFC 9211: a negative TTL is one that is over
        headers.append((b"x-strata-stale", b"1"))
        headers.append((b"cache-status", b"strata; hit; ttl=-%d" % int(report.stale_s)))
    if report.coalesced:
        headers.append((b"x-strata-coalesced", b"1"))
    headers += [(name.encode(), value.encode()) for name, value in report.allowance]
    return headers
