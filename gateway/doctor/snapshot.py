"""What is known of a gateway at one moment: plain values, so that checks can be pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.backends.local_prefix import SharedPrefix
from gateway.backends.upstream import ReplicaView
from gateway.backends.volatile import VolatileReport
from gateway.doctor.counters import Counters
from gateway.doctor.traffic import Traffic
from gateway.readings import Health
from gateway.settings import Settings
from prefix_layer import EngineStats
from semantic_layer import Mode, PartState, Room


@dataclass(frozen=True, slots=True)
class Engine:
    """The local model. ``stats`` is None while it does not answer, ``prompts`` before any.

    ``prefixes`` are the most shared ones; ``context_tokens`` is the longest prompt with its
    answer that the model itself can read.
    """

    model: str
    stats: EngineStats | None = None
    context_tokens: int = 0
    restarts: int = 0
    detail: str = ""
    prompts: VolatileReport | None = None
    prefixes: Sequence[SharedPrefix] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """One intent as it is in force, and what labels say of its hits at its threshold.

    ``served`` counts its semantic hits since the start; ``low`` and ``high`` bound the wrong
    share, ``safe`` is the lowest threshold at which the bound stays within the budget.
    """

    name: str
    threshold: float
    budget: float
    mode: Mode = "auto"
    served: int = 0
    labels: int = 0
    wrong: int = 0
    low: float = 0.0
    high: float = 1.0
    drifted: bool = False
    safe: float | None = None


@dataclass(frozen=True, slots=True)
class TenantUse:
    """What a tenant has used of its limits: ``(limit, used)`` by the limit's name."""

    name: str
    limits: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the checks look at.

    ``stores`` are the caches' parts by name, just asked; ``breakers`` whether each is avoided now;
    ``entries`` the stored answers by store, one that is down absent; ``unread`` the rows that the
    encryption key cannot read, by kind of journal. ``outcomes`` counts the
    requests of this gateway since its start, ``intents`` are those that any request had.
    ``trap_odds`` is how many times likelier wrong near-misses are than priors were fitted for.
    """

    settings: Settings
    health: Health
    stores: Mapping[str, PartState] = field(default_factory=dict)
    breakers: Mapping[str, bool] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)
    room: Room | None = None
    unread: Mapping[str, int] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    traffic: Traffic = field(default_factory=Traffic)
    engine: Engine | None = None
    intents: Sequence[Intent] = ()
    trap_odds: float = 1.0
    tenants: Sequence[TenantUse] = ()
    replicas: Mapping[str, Sequence[ReplicaView]] = field(default_factory=dict)

    @property
    def shows_words(self) -> bool:
        """Whether evidence may quote what users wrote."""
        settings = self.settings
        return settings.requests.texts == "on" and not settings.dashboard.mask_prompts
