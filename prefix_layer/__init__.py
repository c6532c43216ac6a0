"""Engine with a KV prefix cache, in a process of its own. Importing this imports no torch."""

from prefix_layer.client import EngineClient, EngineState
from prefix_layer.config import CodecName, EngineConfig, EvictionName, weights_name
from prefix_layer.errors import (
    EngineFailed,
    EngineUnavailable,
    FailureCode,
    ModelLoadError,
    PrefixLayerError,
    TraceError,
)
from prefix_layer.eviction import POLICIES, make_policy
from prefix_layer.explain import Cause, Edit, Finding, find_cause, first_edit
from prefix_layer.fingerprint import fingerprint_model
from prefix_layer.hashing import PUBLIC_SALT
from prefix_layer.kv_memory import DTYPE_BYTES, KvMemory, read_kv_memory
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
from prefix_layer.rates import Rates, measure_rates
from prefix_layer.trace import (
    SIMULATED,
    Trace,
    count_belady_bound,
    make_load,
    read_trace,
    replay,
)

__all__ = [
    "DTYPE_BYTES",
    "POLICIES",
    "PUBLIC_SALT",
    "SIMULATED",
    "Cause",
    "CodecName",
    "Edit",
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
    "KvMemory",
    "ModelLoadError",
    "PrefixLayerError",
    "Probed",
    "Rates",
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
    "first_edit",
    "make_load",
    "make_policy",
    "measure_rates",
    "read_kv_memory",
    "read_trace",
    "replay",
    "weights_name",
]
