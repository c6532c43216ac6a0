"""Whether anything proves that semantic hits are right."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding
from gateway.doctor.snapshot import Intent, Snapshot
from semantic_layer import LEAST_AGAINST

CHECK = "thresholds"
LEAST_SERVED = 20
FEW_LABELS = 50


def check_thresholds(seen: Snapshot) -> list[Finding]:
    """Look at every intent that serves semantic hits, or whose labels raised an alarm."""
    if not seen.settings.semantic.enabled:
        evidence = "semantic.enabled is false: nothing is served by likeness"
        return [Finding(check=CHECK, severity="ok", title="No semantic hits", evidence=evidence)]
    found = [finding for intent in seen.intents for finding in _intent(seen, intent)]
    return found or [_proven(seen)]


def _intent(seen: Snapshot, intent: Intent) -> Iterator[Finding]:
    if intent.mode == "off":
        return
    if intent.drifted:
        yield _drifted(intent)
    if intent.labels >= LEAST_AGAINST and intent.low > intent.budget:
        yield _over(intent)
    elif intent.served >= LEAST_SERVED and intent.labels < FEW_LABELS:
        yield _unproven(seen, intent)
    elif intent.served >= LEAST_SERVED and intent.high > intent.budget:
        yield _uncertain(seen, intent)


def _drifted(intent: Intent) -> Finding:
    return Finding(
        check=CHECK,
        severity="warning",
        title=f"Hits of {intent.name} began to be wrong more often",
        evidence=f"labels sent it back to its prior, {intent.threshold:.3f}; {_known(intent)}",
        mend=f"see what changed (GET /admin/requests?intent={intent.name}&outcome=semantic); a new "
        "model or new documents need `DELETE /admin/cache/entries`",
    )


def _over(intent: Intent) -> Finding:
    stricter = intent.safe is not None and intent.safe > intent.threshold
    body = f'{{"threshold": {intent.safe:.4f}}}' if stricter else '{"mode": "off"}'
    return Finding(
        check=CHECK,
        severity="error",
        title=f"Hits of {intent.name} are wrong more often than allowed",
        evidence=f"{_known(intent)}; its budget is {percent(intent.budget)}",
        mend=f"PUT /admin/intents/{intent.name} {body}",
    )


def _unproven(seen: Snapshot, intent: Intent) -> Finding:
    return Finding(
        check=CHECK,
        severity="warning" if not intent.labels else "notice",
        title=f"Nothing proves that hits of {intent.name} are right"
        if not intent.labels
        else f"Few labels speak for the hits of {intent.name}",
        evidence=f"{counted(intent.served, 'semantic hit')} since the start at threshold "
        f"{intent.threshold:.3f}, {counted(intent.labels, 'label')}",
        mend=_learn(seen, intent),
    )


def _uncertain(seen: Snapshot, intent: Intent) -> Finding:
    stricter = intent.safe is not None and intent.safe > intent.threshold
    raised = f", or PUT /admin/intents/{intent.name} " + (
        f'{{"threshold": {intent.safe:.4f}}}, where the bound holds' if stricter else ""
    )
    return Finding(
        check=CHECK,
        severity="notice",
        title=f"Labels do not prove the budget of {intent.name} yet",
        evidence=f"{_known(intent)}; its budget is {percent(intent.budget)}",
        mend=_learn(seen, intent) + (raised if stricter else ""),
    )


def _learn(seen: Snapshot, intent: Intent) -> str:
    semantic = seen.settings.semantic
    if semantic.shadow_share == 0:
        return (
            "set semantic.shadow_share to 0.05 (one hit in twenty is also answered afresh), and "
            f"judge pairs: GET /admin/review?intent={intent.name}"
        )
    if semantic.evidence_judge == "none":
        return (
            f"judge pairs: GET /admin/review?intent={intent.name}; set semantic.evidence_judge to "
            "a model that may say whether two answers agree"
        )
    more = min(1.0, 2 * semantic.shadow_share)
    return f"set semantic.shadow_share to {more:g}, or judge pairs: GET /admin/review"


def _known(intent: Intent) -> str:
    return (
        f"{intent.wrong} of {counted(intent.labels, 'label')} at threshold "
        f"{intent.threshold:.3f} wrong: with 95% confidence {percent(intent.low)} to "
        f"{percent(intent.high)} of hits"
    )


def _proven(seen: Snapshot) -> Finding:
    serving = [intent for intent in seen.intents if intent.served]
    evidence = (
        "; ".join(f"{one.name}: {one.served} hits, {_bounds(one)}" for one in serving)
        or "no semantic hits since the start"
    )
    return Finding(
        check=CHECK, severity="ok", title="No threshold lacks evidence", evidence=evidence
    )


def _bounds(intent: Intent) -> str:
    if not intent.labels:
        return "no labels"
    return f"at most {percent(intent.high)} wrong by {counted(intent.labels, 'label')}"
