"""What is learnt while the gateway runs: policies of intents, labels, recorded requests."""

from gateway.evidence.evidence import Evidence, EvidencePolicy
from gateway.evidence.feedback import FeedbackResult, Judged, Person
from gateway.evidence.intents import VersionConflict
from gateway.evidence.recorded import RecordedRequest

__all__ = [
    "Evidence",
    "EvidencePolicy",
    "FeedbackResult",
    "Judged",
    "Person",
    "RecordedRequest",
    "VersionConflict",
]
