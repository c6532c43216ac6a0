"""What is learnt while the gateway runs: policies of intents, labels, recorded requests."""

from gateway.evidence.evidence import Evidence
from gateway.evidence.intents import Change, IntentDesk, VersionConflict
from gateway.evidence.tuner import Tuner

__all__ = ["Change", "Evidence", "IntentDesk", "Tuner", "VersionConflict"]
