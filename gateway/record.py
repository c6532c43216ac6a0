"""What is remembered of one request after it ended; never its texts."""

from dataclasses import dataclass
from typing import Literal

from gateway.backends.base import Usage

CacheOutcome = Literal["exact", "semantic", "miss", "bypass"]
HITS: tuple[CacheOutcome, ...] = ("exact", "semantic")
End = Literal["ok", "error", "aborted", "rejected"]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request, counted once.

    ``seconds`` runs from the pipeline's start to the last event given, ``ttft_s`` to the first
    one that carries content. ``usage`` is None unless the answer was complete. ``stand_in`` is
    the model that answered in place of the one asked for.
    """

    request_id: str
    route: str
    tenant: str
    model: str
    intent: str | None
    outcome: CacheOutcome
    end: End
    seconds: float
    ttft_s: float | None
    usage: Usage | None
    coalesced: bool = False
    stand_in: str | None = None
