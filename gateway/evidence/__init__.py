"""What is learnt while the gateway runs: policies of intents, labels, recorded requests."""

from gateway.evidence.evidence import Evidence, EvidencePolicy
from gateway.evidence.experiments import Experiment, State
from gateway.evidence.feedback import FeedbackResult, Judged, Person
from gateway.evidence.glance import Glance, ReasonRow
from gateway.evidence.intents import PolicyUnreadable, VersionConflict
from gateway.evidence.journal_copy import JournalRow
from gateway.evidence.playback import Playback
from gateway.evidence.recorded import RecordedRequest
from gateway.evidence.review import ReviewItem
from gateway.evidence.trainer import ALL

__all__ = [
    "ALL",
    "Evidence",
    "EvidencePolicy",
    "Experiment",
    "FeedbackResult",
    "Glance",
    "JournalRow",
    "Judged",
    "Person",
    "Playback",
    "PolicyUnreadable",
    "ReasonRow",
    "RecordedRequest",
    "ReviewItem",
    "State",
    "VersionConflict",
]
