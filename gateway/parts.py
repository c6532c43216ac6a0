"""The opened parts of one gateway, as handlers receive them."""

from dataclasses import dataclass

from gateway.auth import KeyRing
from gateway.backends.routing import Backends
from gateway.embeddings import Embeddings
from gateway.metrics import Metrics
from gateway.pipeline import Pipeline
from gateway.quotas import Quotas
from gateway.settings import Settings
from gateway.stats import TrafficStats
from prefix_layer import EngineClient
from semantic_layer import SemanticCache


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a handler may call; built by `gateway.lifespan.open_parts`.

    ``engine`` is None when no local model is set.
    """

    settings: Settings
    key_ring: KeyRing
    pipeline: Pipeline
    embeddings: Embeddings
    cache: SemanticCache
    backends: Backends
    engine: EngineClient | None
    metrics: Metrics
    stats: TrafficStats
    quotas: Quotas
