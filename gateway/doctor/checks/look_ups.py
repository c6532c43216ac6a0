"""Look-ups that had to leave something out: the embedder, the search or the verifier."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Snapshot

CHECK = "look_ups"
LEAST_REQUESTS = 20
SKIPPED_SHARE = 0.02
_STEPS = {
    "exact": ("the response store", "redis.timeout_s"),
    "embed": ("the embedder", "embedder.timeout_s"),
    "search": ("the vector index", "qdrant.timeout_s"),
    "verify": ("the verifier", "semantic.verifier_timeout_s"),
}
_PARTS = {"exact": "redis", "embed": "embedder", "search": "qdrant", "verify": "verifier"}
_BUNDLED = "bundled"


def check_look_ups(seen: Snapshot) -> list[Finding]:
    """Count steps that were skipped, and models that decide less well than the bundled ones."""
    found = [finding for rule in (_skipped, _models) for finding in rule(seen)]
    return found or [
        Finding(
            check=CHECK,
            severity="ok",
            title="Look-ups are whole",
            evidence=f"of {counted(seen.traffic.requests, 'recorded request')} none went without "
            f"{', '.join(_STEPS)}",
        )
    ]


def _skipped(seen: Snapshot) -> Iterator[Finding]:
    total = seen.traffic.looked_up()
    for step, (what, key) in _STEPS.items():
        skipped = seen.traffic.skips.get(step, 0)
        if total < LEAST_REQUESTS or skipped < SKIPPED_SHARE * total:
            continue
        yield Finding(
            check=CHECK,
            severity="warning",
            title=f"Look-ups go without {what}",
            evidence=f"{percent(skipped / total)} of {counted(total, 'request')} were decided "
            f"without it; {_failed(seen, step):.0f} of its calls failed",
            mend=f"raise {key}, or give the gateway more processor time; GET /admin/requests has "
            f"the reason in each request ({step}: skip)",
        )


def _models(seen: Snapshot) -> Iterator[Finding]:
    settings = seen.settings
    if not settings.semantic.enabled:
        return
    if settings.embedder.model != _BUNDLED:
        yield Finding(
            check=CHECK,
            severity="notice",
            title="Scores are not fitted to this embedder",
            evidence=f"embedder.model is {settings.embedder.model}: only texts that say the same "
            "in every word hit",
            mend="set embedder.model to bundled, whose cosines the scores are fitted to",
        )
    if settings.semantic.verifier == "none":
        yield Finding(
            check=CHECK,
            severity="notice",
            title="Nothing reads what rules do not decide",
            evidence="semantic.verifier is none: rules and similarity alone decide",
            mend="set semantic.verifier to bundled",
        )


def _failed(seen: Snapshot, step: str) -> float:
    return seen.counters.sum("store_failures", _PARTS[step])
