"""Engine with a KV prefix cache, in a process of its own. Importing this imports no torch."""

from prefix_layer.client import EngineClient, EngineState
from prefix_layer.config import EngineConfig, EvictionName
from prefix_layer.errors import (
    EngineFailed,
    EngineUnavailable,
    FailureCode,
    ModelLoadError,
    PrefixLayerError,
)
from prefix_layer.fingerprint import fingerprint_model
from prefix_layer.messages import (
    EngineStats,
    FinishReason,
    Generate,
    Ready,
    Sampling,
    TokenLogprob,
    Tokens,
)

__all__ = [
    "EngineClient",
    "EngineConfig",
    "EngineFailed",
    "EngineState",
    "EngineStats",
    "EngineUnavailable",
    "EvictionName",
    "FailureCode",
    "FinishReason",
    "Generate",
    "ModelLoadError",
    "PrefixLayerError",
    "Ready",
    "Sampling",
    "TokenLogprob",
    "Tokens",
    "fingerprint_model",
]
