"""Engine with a KV prefix cache, in a process of its own. Importing this imports no torch."""

from prefix_layer.client import EngineClient, EngineState
from prefix_layer.config import EngineConfig, EvictionName
from prefix_layer.errors import (
    EngineFailed,
    EngineUnavailable,
    FailureCode,
    ModelLoadError,
    PrefixLayerError,
    TraceError,
)
from prefix_layer.eviction import POLICIES, make_policy
from prefix_layer.explain import Cause, Finding, find_cause
from prefix_layer.fingerprint import fingerprint_model
from prefix_layer.hashing import PUBLIC_SALT
from prefix_layer.messages import (
    EngineStats,
    FinishReason,
    Generate,
    Grammar,
    Probed,
    Ready,
    Sampling,
    TokenLogprob,
    Tokens,
    Tree,
    TreeNode,
    Warmed,
)
from prefix_layer.trace import (
    SIMULATED,
    Trace,
    count_belady_bound,
    read_trace,
    replay,
    simulate,
)

__all__ = [
    "POLICIES",
    "PUBLIC_SALT",
    "SIMULATED",
    "Cause",
    "EngineClient",
    "EngineConfig",
    "EngineFailed",
    "EngineState",
    "EngineStats",
    "EngineUnavailable",
    "EvictionName",
    "FailureCode",
    "Finding",
    "FinishReason",
    "Generate",
    "Grammar",
    "ModelLoadError",
    "PrefixLayerError",
    "Probed",
    "Ready",
    "Sampling",
    "TokenLogprob",
    "Tokens",
    "Trace",
    "TraceError",
    "Tree",
    "TreeNode",
    "Warmed",
    "count_belady_bound",
    "find_cause",
    "fingerprint_model",
    "make_policy",
    "read_trace",
    "replay",
    "simulate",
]
