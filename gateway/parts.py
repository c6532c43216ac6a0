"""The opened parts of one gateway, as handlers receive them."""

from dataclasses import dataclass, field

from gateway.admin.session import Sessions
from gateway.auth import KeyRing
from gateway.backends.local import LocalBackend
from gateway.backends.routing import Backends
from gateway.embeddings import Embeddings
from gateway.evidence import Evidence
from gateway.kept_responses import KeptResponses
from gateway.ledger import Ledger
from gateway.metrics import Metrics
from gateway.pipeline import Pipeline
from gateway.quotas import Quotas
from gateway.reload import Reloader
from gateway.series import TrafficSeries
from gateway.settings import Settings
from gateway.stats import TrafficStats
from gateway.upstream_pool import UpstreamPool
from gateway.upstreams import Upstreams
from prefix_layer import EngineClient
from semantic_layer import SemanticCache


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything a handler may call; built by `gateway.lifespan.open_parts`.

    ``engine`` and ``local`` are None when no local model is set. ``relayed_headers`` are the names,
    in lower case, of the client's headers that some upstream relays.
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
    responses: KeptResponses
    evidence: Evidence
    series: TrafficSeries = field(default_factory=TrafficSeries)
    ledger: Ledger = field(default_factory=Ledger.without_prices)
    upstreams: Upstreams = field(default_factory=dict)
    relayed_headers: frozenset[bytes] = frozenset()
    local: LocalBackend | None = None
    pool: UpstreamPool | None = None
    reloader: Reloader | None = None
    sessions: Sessions = field(default_factory=Sessions)
