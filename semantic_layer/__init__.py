"""Exact and semantic response cache. Importing this imports no torch and no store's client."""

from semantic_layer.breaker import Breaker, BreakerSettings, Circuit
from semantic_layer.cache import SemanticCache
from semantic_layer.counters import (
    Counted,
    Counters,
    MemoryCounters,
    Verdict,
    Window,
    open_counters,
)
from semantic_layer.embedding import (
    Embedded,
    Embedder,
    Encoder,
    ThreadedEmbedder,
    Vectors,
    load_encoder,
)
from semantic_layer.entry import Entry
from semantic_layer.errors import (
    EmbedderFailed,
    SemanticLayerError,
    ServerFailed,
    ServerNotFound,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    TextTooLong,
)
from semantic_layer.follower import Follower, Reader
from semantic_layer.intent import INTENTS, detect_intent
from semantic_layer.intent_classifier import IntentClassifier
from semantic_layer.intent_learning import IntentTeacher
from semantic_layer.intent_policy import IntentPolicies, IntentPolicy, Mode
from semantic_layer.intent_rules import SEED_RULES, IntentRule
from semantic_layer.journal import Journal, MemoryJournal, Row, open_journal
from semantic_layer.labels import Label, LabelSource
from semantic_layer.leases import Lease, Leases, open_leases
from semantic_layer.outcome import (
    Bypass,
    Candidate,
    Hit,
    Inspection,
    Judgement,
    Miss,
    Outcome,
    Reason,
)
from semantic_layer.policy import CachePolicy
from semantic_layer.records import MemoryRecords, Records, open_records
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.response_store import (
    MemoryResponseStore,
    Page,
    ResponseStore,
    Selector,
    open_response_store,
)
from semantic_layer.scorer import Scorer
from semantic_layer.thresholds import PRIORS, Thresholds
from semantic_layer.upkeep import PartState
from semantic_layer.valkey import Valkey
from semantic_layer.vector_index import (
    MemoryVectorIndex,
    PointFeed,
    SharedIndex,
    VectorIndex,
    collection_name,
    open_point_feed,
    open_vector_index,
)

__all__ = [
    "INTENTS",
    "PRIORS",
    "SEED_RULES",
    "Breaker",
    "BreakerSettings",
    "Bypass",
    "CacheControl",
    "CachePolicy",
    "CacheQuery",
    "Candidate",
    "Circuit",
    "Counted",
    "Counters",
    "Embedded",
    "Embedder",
    "EmbedderFailed",
    "Encoder",
    "Entry",
    "Follower",
    "Hit",
    "Inspection",
    "IntentClassifier",
    "IntentPolicies",
    "IntentPolicy",
    "IntentRule",
    "IntentTeacher",
    "Journal",
    "Judgement",
    "Label",
    "LabelSource",
    "Lease",
    "Leases",
    "MemoryCounters",
    "MemoryJournal",
    "MemoryRecords",
    "MemoryResponseStore",
    "MemoryVectorIndex",
    "Miss",
    "Mode",
    "Outcome",
    "Page",
    "PartState",
    "PointFeed",
    "Reader",
    "Reason",
    "Records",
    "ResponseStore",
    "Row",
    "Scorer",
    "Selector",
    "SemanticCache",
    "SemanticLayerError",
    "ServerFailed",
    "ServerNotFound",
    "SharedIndex",
    "StoreError",
    "StoreLocked",
    "StoreUnavailable",
    "TextTooLong",
    "ThreadedEmbedder",
    "Thresholds",
    "Valkey",
    "VectorIndex",
    "Vectors",
    "Verdict",
    "Window",
    "collection_name",
    "detect_intent",
    "load_encoder",
    "open_counters",
    "open_journal",
    "open_leases",
    "open_point_feed",
    "open_records",
    "open_response_store",
    "open_vector_index",
]
