"""One call and what becomes of it: clocked, counted once, however it ends. Knows no HTTP."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from gateway.auth import Tenant
from gateway.backends.base import Delta, Event, Final, Usage
from gateway.errors import Forbidden, NotCached, RateLimited
from gateway.quotas import Allowance, Ticket
from gateway.record import HITS, CacheOutcome, End, RequestRecord, Spoken
from semantic_layer import CacheControl, Judgement

OnRecord = Callable[[RequestRecord], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One validated request; ``body`` is its JSON without ``strata``, ``api`` names its shape.

    ``headers`` are those that some upstream relays, by lower-case name. ``num_bytes`` is the size
    of the body as it came, 0 where nobody knows it.
    """

    request_id: str
    tenant: Tenant
    model: str
    body: dict[str, Any]
    control: CacheControl
    route: str
    namespace: str = ""
    api: str = "chat"
    headers: Mapping[str, str] = field(default_factory=dict)
    num_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What the response headers say about the caches."""

    outcome: CacheOutcome
    judgement: Judgement
    entry_id: str | None = None
    age_s: float | None = None
    coalesced: bool = False
    allowance: Allowance = ()
    stale_s: float | None = None


class Counted(Protocol):
    """What a record says of a call, of whatever kind it is."""

    @property
    def request_id(self) -> str:
        """The id in logs and headers."""
        ...

    @property
    def tenant(self) -> Tenant:
        """Who asks."""
        ...

    @property
    def model(self) -> str:
        """What was asked for."""
        ...

    @property
    def route(self) -> str:
        """Where it was asked."""
        ...


class Watch:
    """Clocks one call and records it exactly once, however it ends.

    ``spoken`` gathers its words; ``stored_as`` is the entry that its answer becomes.
    ``has_first_token`` is False for answers that are no text: they have no time to first token.
    """

    def __init__(self, call: Counted, on_record: OnRecord, *, has_first_token: bool = True) -> None:
        self.report = CacheReport("miss", Judgement())
        self.spoken: Spoken | None = None
        self.stored_as: str | None = None
        self._call = call
        self._on_record: OnRecord | None = on_record
        self._started = time.perf_counter()
        self._ttft_s: float | None = None
        self._usage: Usage | None = None
        self._stand_in: str | None = None
        self._num_deltas = 0
        self._num_processed: int | None = None
        self._has_first_token = has_first_token
        self.ticket: Ticket | None = None

    @property
    def allowance(self) -> Allowance:
        """What is left of the tenant's limits."""
        return self.ticket.allowance if self.ticket else ()

    def coalesced(self) -> None:
        """Take note that another request's generation answers this one."""
        self.report = replace(self.report, coalesced=True)

    def saw(self, event: Event) -> None:
        """Take note of an event that is given to the caller."""
        if isinstance(event, Delta):
            self._num_deltas += 1
            if self.spoken is not None and event.index == 0 and self.report.outcome not in HITS:
                self.spoken.add(event.text)
            if self._ttft_s is None:
                self._ttft_s = time.perf_counter() - self._started
        elif isinstance(event, Final):
            self._usage, self._stand_in = event.usage, event.stand_in

    def completed(self, usage: Usage, num_processed: int | None = None) -> None:
        """Take note of a whole answer's counts.

        ``num_processed`` is how many of its tokens a model processed where that is not all or none.
        """
        self._usage, self._num_processed = usage, num_processed

    def failed(self, error: BaseException) -> None:
        """Record a call that raised."""
        if isinstance(error, NotCached):  # a plain miss; without usage it has no first token
            self._record("ok")
        elif isinstance(error, (Forbidden, RateLimited)):
            self._record("rejected")
        else:
            self._record("error" if isinstance(error, Exception) else "aborted")

    def aborted(self) -> None:
        """Record a call that was given up, unless it has been recorded."""
        self._record("aborted")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.failed(error)
        else:
            self._record("ok" if self._usage is not None else "aborted")

    def _record(self, end: End) -> None:
        if self._on_record is None:
            return
        on_record, self._on_record = self._on_record, None
        if self.ticket is not None:
            self.ticket.end(self._num_generated_tokens())
        seconds = time.perf_counter() - self._started
        is_whole = end == "ok" and self._usage is not None and self._has_first_token
        on_record(
            RequestRecord(
                request_id=self._call.request_id,
                route=self._call.route,
                tenant=self._call.tenant.name,
                model=self._call.model,
                intent=self.report.judgement.intent,
                outcome=self.report.outcome,
                end=end,
                seconds=seconds,
                ttft_s=seconds if self._ttft_s is None and is_whole else self._ttft_s,
                usage=self._usage,
                coalesced=self.report.coalesced,
                stand_in=self._stand_in,
                entry_id=self.report.entry_id or self.stored_as,
                judgement=self.report.judgement,
                spoken=self.spoken,
            )
        )

    def _num_generated_tokens(self) -> int:
        """Return the tokens a model processed for this call; of an aborted one what was seen."""
        if self._num_processed is not None:
            return self._num_processed
        if self.report.outcome in HITS or self.report.coalesced:
            return 0
        if self._usage is None:
            return self._num_deltas
        return self._usage.prompt_tokens + self._usage.completion_tokens
