"""Whether anything proves that semantic hits are right."""

from collections.abc import Iterator

from gateway.doctor.figures import counted, percent
from gateway.doctor.finding import Finding, finding
from gateway.doctor.snapshot import Intent, Snapshot
from gateway.said import Joined, Said, Saying, say
from semantic_layer import LEAST_AGAINST

CHECK = "thresholds"
LEAST_SERVED = 20
FEW_LABELS = 50


def check_thresholds(seen: Snapshot) -> list[Finding]:
    """Look at every intent that serves semantic hits, or whose labels raised an alarm."""
    if not seen.settings.semantic.enabled:
        evidence = say("semantic.enabled is false: nothing is served by likeness")
        return [finding(CHECK, "ok", say("No semantic hits"), evidence)]
    found = [finding for intent in seen.intents for finding in _intent(seen, intent)]
    if seen.trap_odds > 1:
        found.insert(0, _doubted(seen))
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


def _doubted(seen: Snapshot) -> Finding:
    return finding(
        CHECK,
        "notice",
        say("Near-misses are wrong more often than thresholds were fitted for"),
        say(
            "{odds} times the odds: intents without proof of their own are held to stricter scores",
            odds=f"{seen.trap_odds:.1f}",
        ),
        say("judge pairs: GET /admin/review, and what labels prove is served again"),
    )


def _drifted(intent: Intent) -> Finding:
    back = say("labels sent it back to its prior, {at}", at=f"{intent.threshold:.4f}")
    return finding(
        CHECK,
        "warning",
        say("Hits of {intent} began to be wrong more often", intent=intent.name),
        Joined([back, _known(intent)]),
        say(
            "see what changed (GET /admin/requests?intent={intent}&outcome=semantic); a new model "
            "or new documents need `DELETE /admin/cache/entries`",
            intent=intent.name,
        ),
    )


def _over(intent: Intent) -> Finding:
    stricter = intent.safe is not None and intent.safe > intent.threshold
    body = f'{{"threshold": {intent.safe:.4f}}}' if stricter else '{"mode": "off"}'
    return finding(
        CHECK,
        "error",
        say("Hits of {intent} are wrong more often than allowed", intent=intent.name),
        Joined([_known(intent), _budget(intent)]),
        f"PUT /admin/intents/{intent.name} {body}",
    )


def _unproven(seen: Snapshot, intent: Intent) -> Finding:
    return finding(
        CHECK,
        "notice" if intent.labels else "warning",
        say(
            "Few labels speak for the hits of {intent}"
            if intent.labels
            else "Nothing proves that hits of {intent} are right",
            intent=intent.name,
        ),
        say(
            "{hits} since the start at threshold {at}, {labels}",
            hits=counted(intent.served, "semantic hit"),
            at=f"{intent.threshold:.4f}",
            labels=counted(intent.labels, "label"),
        ),
        _learn(seen, intent),
    )


def _uncertain(seen: Snapshot, intent: Intent) -> Finding:
    mends: list[Saying] = [_learn(seen, intent)]
    if intent.safe is not None and intent.safe > intent.threshold:
        body = f'{{"threshold": {intent.safe:.4f}}}'
        mends.append(
            say(
                "or PUT /admin/intents/{intent} {body}, where the bound holds",
                intent=intent.name,
                body=body,
            )
        )
    return finding(
        CHECK,
        "notice",
        say("Labels do not prove the budget of {intent} yet", intent=intent.name),
        Joined([_known(intent), _budget(intent)]),
        Joined(mends, ", "),
    )


def _learn(seen: Snapshot, intent: Intent) -> Said:
    semantic = seen.settings.semantic
    if semantic.shadow_share == 0:
        return say(
            "set semantic.shadow_share to 0.05 (one hit in twenty is also answered afresh), and "
            "judge pairs: GET /admin/review?intent={intent}",
            intent=intent.name,
        )
    if semantic.evidence_judge == "none":
        return say(
            "judge pairs: GET /admin/review?intent={intent}; set semantic.evidence_judge to a "
            "model that may say whether two answers agree",
            intent=intent.name,
        )
    more = min(1.0, 2 * semantic.shadow_share)
    return say(
        "set semantic.shadow_share to {share}, or judge pairs: GET /admin/review", share=f"{more:g}"
    )


def _budget(intent: Intent) -> Said:
    return say("its budget is {share}", share=percent(intent.budget))


def _known(intent: Intent) -> Said:
    return say(
        "{wrong} of {labels} at threshold {at} wrong: with 95% confidence {low} to {high} of hits",
        wrong=str(intent.wrong),
        labels=counted(intent.labels, "label"),
        at=f"{intent.threshold:.4f}",
        low=percent(intent.low),
        high=percent(intent.high),
    )


def _proven(seen: Snapshot) -> Finding:
    serving = [_serving(intent) for intent in seen.intents if intent.served]
    return finding(
        CHECK,
        "ok",
        say("No threshold lacks evidence"),
        Joined(serving) if serving else say("no semantic hits since the start"),
    )


def _serving(intent: Intent) -> Said:
    bounds = say("no labels")
    if intent.labels:
        labels = counted(intent.labels, "label")
        bounds = say("at most {share} wrong by {labels}", share=percent(intent.high), labels=labels)
    hits = counted(intent.served, "hit")
    return say("{intent}: {hits}, {bounds}", intent=intent.name, hits=hits, bounds=bounds)
