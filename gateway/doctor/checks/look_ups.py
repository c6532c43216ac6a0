"""Look-ups that had to leave something out: the embedder, the search or the verifier."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Snapshot
from gateway.said import say

CHECK = "look_ups"
LEAST_REQUESTS = 20
SKIPPED_SHARE = 0.02
_STEPS = {
    "exact": (say("the response store"), "redis.timeout_s"),
    "embed": (say("the embedder"), "embedder.timeout_s"),
    "search": (say("the vector index"), "qdrant.timeout_s"),
    "verify": (say("the verifier"), "semantic.verifier_timeout_s"),
}
_PARTS = {"exact": "redis", "embed": "embedder", "search": "qdrant", "verify": "verifier"}
_BUNDLED = "bundled"


def check_look_ups(seen: Snapshot) -> list[Finding]:
    """Count steps that were skipped, and models that decide less well than the bundled ones."""
    found = [finding for rule in (_skipped, _models) for finding in rule(seen)]
    return found or [
        finding(
            CHECK,
            "ok",
            say("Look-ups are whole"),
            say(
                "of {requests} none went without {steps}",
                requests=counted(seen.traffic.requests, "recorded request"),
                steps=", ".join(_STEPS),
            ),
        )
    ]


def _skipped(seen: Snapshot) -> Iterator[Finding]:
    total = seen.traffic.looked_up()
    for step, (what, key) in _STEPS.items():
        skipped = seen.traffic.skips.get(step, 0)
        if total < LEAST_REQUESTS or skipped < SKIPPED_SHARE * total:
            continue
        yield finding(
            CHECK,
            "warning",
            say("Look-ups go without {what}", what=what),
            say(
                "{share} of {requests} were decided without it; {failed} of its calls failed",
                share=percent(skipped / total),
                requests=counted(total, "request"),
                failed=f"{_failed(seen, step):.0f}",
            ),
            say(
                "raise {key}, or give the gateway more processor time; GET /admin/requests has "
                "the reason in each request ({step}: skip)",
                key=key,
                step=step,
            ),
        )


def _models(seen: Snapshot) -> Iterator[Finding]:
    settings = seen.settings
    if not settings.semantic.enabled:
        return
    if settings.embedder.model != _BUNDLED:
        yield finding(
            CHECK,
            "notice",
            say("Scores are not fitted to this embedder"),
            say(
                "embedder.model is {model}: only texts that say the same in every word hit",
                model=settings.embedder.model,
            ),
            say("set embedder.model to bundled, whose cosines the scores are fitted to"),
        )
    if settings.semantic.verifier == "none":
        yield finding(
            CHECK,
            "notice",
            say("Nothing reads what rules do not decide"),
            say("semantic.verifier is none: rules and similarity alone decide"),
            say("set semantic.verifier to bundled"),
        )


def _failed(seen: Snapshot, step: str) -> float:
    return seen.counters.sum("store_failures", _PARTS[step])
