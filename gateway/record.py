"""What is remembered of one request after it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.backends.base import Usage
from semantic_layer import Judgement

CacheOutcome = Literal["exact", "semantic", "miss", "bypass"]
HITS: tuple[CacheOutcome, ...] = ("exact", "semantic")
End = Literal["ok", "error", "aborted", "rejected"]


_MOST_CHARS = 4000


@dataclass(slots=True)
class Spoken:
    """The words of one request, for the operator's record of it alone; no log has them.

    ``stored`` is the question that the served entry was stored for.
    """

    body: Mapping[str, Any]
    namespace: str = ""
    stored: str = ""
    answer: str = ""

    def add(self, text: str) -> None:
        """Take more of the answer, as far as it is kept."""
        if len(self.answer) < _MOST_CHARS:
            self.answer += text


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request, counted once.

    ``seconds`` runs from the pipeline's start to the last event given, ``ttft_s`` to the first
    one that carries content. ``usage`` is None unless the answer was complete. ``stand_in`` is
    the model that answered in place of the one asked for. ``entry_id`` is the entry that answered,
    or under which the answer was to be stored.
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
    entry_id: str | None = None
    judgement: Judgement = field(default_factory=Judgement)
    spoken: Spoken | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether it ended well with nothing: only the cache was asked, and nothing was there."""
        return self.end == "ok" and self.usage is None

    @property
    def is_answered(self) -> bool:
        """Whether it ended well with a whole answer."""
        return self.end == "ok" and self.usage is not None
