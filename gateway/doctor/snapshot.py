"""What is known of a gateway at one moment: plain values, so that checks can be pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.doctor.counters import Counters
from gateway.readings import Health
from gateway.settings import Settings
from semantic_layer import PartState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything the checks look at.

    ``stores`` are the caches' parts by name, just asked; ``breakers`` whether each is avoided now;
    ``entries`` the stored answers by store, one that is down absent. ``outcomes``
    counts the requests since the start.
    """

    settings: Settings
    health: Health
    stores: Mapping[str, PartState] = field(default_factory=dict)
    breakers: Mapping[str, bool] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    outcomes: Mapping[str, int] = field(default_factory=dict)
