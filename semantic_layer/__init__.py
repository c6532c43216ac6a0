"""Exact and semantic response cache. Importing this imports no torch and no store's client."""

from semantic_layer.answer_equality import Equality
from semantic_layer.binomial import interval
from semantic_layer.breaker import Breaker, BreakerSettings, Circuit
from semantic_layer.cache import SemanticCache
from semantic_layer.calibration import (
    LEAST_AGAINST,
    Budgets,
    Calibration,
    IntentCalibration,
    ThresholdSource,
    calibrate,
)
from semantic_layer.counters import (
    Counted,
    Counters,
    MemoryCounters,
    Verdict,
    Window,
    open_counters,
)
from semantic_layer.curve import CurvePoint, Recorded, Replay, replay, threshold_curve
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
    VerifierFailed,
)
from semantic_layer.follower import Follower, Reader
from semantic_layer.intent import INTENTS, detect_intent
from semantic_layer.intent_classifier import IntentClassifier
from semantic_layer.intent_learning import IntentTeacher
from semantic_layer.intent_policy import IntentPolicies, IntentPolicy, Mode
from semantic_layer.intent_rules import SEED_RULES, IntentRule
from semantic_layer.journal import Journal, MemoryJournal, Row, open_journal
from semantic_layer.label_book import LABELS, MAX_PER_INTENT, LabelBook, encode_label
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
from semantic_layer.pooled import PooledThresholds
from semantic_layer.privacy import Private
from semantic_layer.records import MemoryRecords, Records, open_records
from semantic_layer.reembedding import Progress
from semantic_layer.rejections import (
    MAX_REJECTIONS,
    REJECTED,
    REJECTIONS,
    TAKEN_BACK,
    Rejections,
    rejection_id,
)
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.response_store import (
    MemoryResponseStore,
    Page,
    ResponseStore,
    Room,
    Selector,
    open_response_store,
)
from semantic_layer.scorer import Scorer
from semantic_layer.sealing import SealedJournal, SealedRecords, Sealer, read_keys
from semantic_layer.thresholds import PRIORS, Thresholds
from semantic_layer.trial import Arm, Tally, Trial, TrialVerdict, arm_of, judge_trial
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
from semantic_layer.verifier import (
    Pair,
    PairScorer,
    ThreadedVerifier,
    Verifier,
    load_verifier,
)
from semantic_layer.walk import proves_once

__all__ = [
    "INTENTS",
    "LABELS",
    "LEAST_AGAINST",
    "MAX_PER_INTENT",
    "MAX_REJECTIONS",
    "PRIORS",
    "REJECTED",
    "REJECTIONS",
    "SEED_RULES",
    "TAKEN_BACK",
    "Arm",
    "Breaker",
    "BreakerSettings",
    "Budgets",
    "Bypass",
    "CacheControl",
    "CachePolicy",
    "CacheQuery",
    "Calibration",
    "Candidate",
    "Circuit",
    "Counted",
    "Counters",
    "CurvePoint",
    "Embedded",
    "Embedder",
    "EmbedderFailed",
    "Encoder",
    "Entry",
    "Equality",
    "Follower",
    "Hit",
    "Inspection",
    "IntentCalibration",
    "IntentClassifier",
    "IntentPolicies",
    "IntentPolicy",
    "IntentRule",
    "IntentTeacher",
    "Journal",
    "Judgement",
    "Label",
    "LabelBook",
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
    "Pair",
    "PairScorer",
    "PartState",
    "PointFeed",
    "PooledThresholds",
    "Private",
    "Progress",
    "Reader",
    "Reason",
    "Recorded",
    "Records",
    "Rejections",
    "Replay",
    "ResponseStore",
    "Room",
    "Row",
    "Scorer",
    "SealedJournal",
    "SealedRecords",
    "Sealer",
    "Selector",
    "SemanticCache",
    "SemanticLayerError",
    "ServerFailed",
    "ServerNotFound",
    "SharedIndex",
    "StoreError",
    "StoreLocked",
    "StoreUnavailable",
    "Tally",
    "TextTooLong",
    "ThreadedEmbedder",
    "ThreadedVerifier",
    "ThresholdSource",
    "Thresholds",
    "Trial",
    "TrialVerdict",
    "Valkey",
    "VectorIndex",
    "Vectors",
    "Verdict",
    "Verifier",
    "VerifierFailed",
    "Window",
    "arm_of",
    "calibrate",
    "collection_name",
    "detect_intent",
    "encode_label",
    "interval",
    "judge_trial",
    "load_encoder",
    "load_verifier",
    "open_counters",
    "open_journal",
    "open_leases",
    "open_point_feed",
    "open_records",
    "open_response_store",
    "open_vector_index",
    "proves_once",
    "read_keys",
    "rejection_id",
    "replay",
    "threshold_curve",
]
