"""Exact and semantic response cache. Importing this imports no torch and no store's client."""

from semantic_layer.beside import beside_loop
from semantic_layer.breaker import Breaker, BreakerSettings, Circuit
from semantic_layer.cache import SemanticCache
from semantic_layer.calibration.binomial import interval
from semantic_layer.calibration.calibration import (
    LEAST_AGAINST,
    Budgets,
    Calibration,
    IntentCalibration,
    ThresholdSource,
    calibrate,
)
from semantic_layer.calibration.curve import CurvePoint, Recorded, Replay, replay, threshold_curve
from semantic_layer.calibration.label_book import LABELS, MAX_PER_INTENT, LabelBook, encode_label
from semantic_layer.calibration.labels import Label, LabelSource
from semantic_layer.calibration.pooled import PooledThresholds
from semantic_layer.calibration.settled import UNPROVEN
from semantic_layer.calibration.thresholds import PRIORS, Start, Thresholds
from semantic_layer.calibration.trap_odds import trap_odds
from semantic_layer.calibration.trial import Arm, Tally, Trial, TrialVerdict, arm_of, judge_trial
from semantic_layer.calibration.walk import proves_once
from semantic_layer.chats.chat import Chat
from semantic_layer.chats.rewriting import Rewriter
from semantic_layer.comparison.answer_equality import Equality
from semantic_layer.entry import Entry
from semantic_layer.errors import (
    EmbedderFailed,
    RewriterFailed,
    SemanticLayerError,
    ServerFailed,
    ServerNotFound,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    TextTooLong,
    VerifierFailed,
)
from semantic_layer.intents.intent import INTENTS, detect_intent
from semantic_layer.intents.intent_classifier import IntentClassifier
from semantic_layer.intents.intent_learning import IntentTeacher
from semantic_layer.intents.intent_policy import IntentPolicies, IntentPolicy, Mode
from semantic_layer.intents.intent_rules import SEED_RULES, IntentRule
from semantic_layer.models.embedding import (
    Embedded,
    Embedder,
    Encoder,
    ThreadedEmbedder,
    Vectors,
    load_encoder,
)
from semantic_layer.models.scorer import Scorer
from semantic_layer.models.verifier import (
    BUNDLED_VERIFIER,
    Pair,
    PairScorer,
    ThreadedVerifier,
    Verifier,
    load_verifier,
)
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
from semantic_layer.privacy import Private
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
from semantic_layer.stores.counters import (
    Counted,
    Counters,
    MemoryCounters,
    Verdict,
    Window,
    open_counters,
)
from semantic_layer.stores.follower import Follower, Reader
from semantic_layer.stores.journal import Journal, MemoryJournal, Row, open_journal
from semantic_layer.stores.leases import Lease, Leases, open_leases
from semantic_layer.stores.records import MemoryRecords, Records, open_records
from semantic_layer.stores.response_store import (
    MemoryResponseStore,
    Page,
    ResponseStore,
    Room,
    Selector,
    open_response_store,
)
from semantic_layer.stores.sealing import SealedJournal, SealedRecords, Sealer, read_keys
from semantic_layer.stores.valkey import Valkey
from semantic_layer.stores.vector_index import (
    MemoryVectorIndex,
    PointFeed,
    SharedIndex,
    VectorIndex,
    collection_name,
    open_point_feed,
    open_vector_index,
)
from semantic_layer.upkeep import PartState

__all__ = [
    "BUNDLED_VERIFIER",
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
    "UNPROVEN",
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
    "Chat",
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
    "Rewriter",
    "RewriterFailed",
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
    "Start",
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
    "beside_loop",
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
    "trap_odds",
]
