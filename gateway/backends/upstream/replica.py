"""One address of an engine and what is known of its state. Knows no HTTP."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from semantic_layer import BreakerSettings, Circuit

BREAKER = BreakerSettings(failures=5, backoff_s=0.5, max_backoff_s=15.0)
MAX_REST_S = 60.0

ReplicaState = Literal["ready", "resting", "down", "drained"]


class ReplicaView(Struct, frozen=True):
    """What operators see of a replica."""

    url: str
    state: ReplicaState
    in_flight: int
    weight: float
    requests: int
    failures: int
    detail: str


class Replica:
    """One engine process behind an upstream.

    ``weight`` is its share of the load beside the others. A drained replica gets no new requests;
    those in flight go on.
    """

    def __init__(
        self,
        url: str,
        weight: float = 1.0,
        *,
        is_drained: bool = False,
        breaker: BreakerSettings = BREAKER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self.weight = weight
        self.is_drained = is_drained
        self.in_flight = 0
        self._num_requests = 0
        self._num_failures = 0
        self._detail = ""
        self._is_up = True
        self._circuit = Circuit(breaker)
        self._rests_until = 0.0
        self._clock = clock

    @property
    def state(self) -> ReplicaState:
        """Whether it may be sent requests now, and if not, why."""
        if self.is_drained:
            return "drained"
        if not self._circuit.would_admit(self._clock()):
            return "down"
        return "resting" if self._clock() < self._rests_until else "ready"

    @property
    def is_up(self) -> bool:
        """Whether the last that was heard of it is that it answers."""
        return self._is_up

    @property
    def detail(self) -> str:
        """How it failed last, empty when it answers."""
        return self._detail

    @property
    def load(self) -> float:
        """Requests in flight per weight."""
        return self.in_flight / self.weight

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count one request in flight."""
        self.in_flight += 1
        self._num_requests += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    @contextmanager
    def judged(self) -> Iterator["Verdict"]:
        """Send one request or probe; its verdict decides about the next ones."""
        verdict = Verdict()
        ticket = self._circuit.admit(self._clock())
        try:
            yield verdict
        finally:
            self._judge(ticket, verdict)

    def rest(self, seconds: float) -> None:
        """Send it nothing for a while, as it asked."""
        self._rests_until = self._clock() + min(seconds, MAX_REST_S)

    @property
    def view(self) -> ReplicaView:
        """What operators see."""
        return ReplicaView(
            self.url,
            self.state,
            self.in_flight,
            self.weight,
            self._num_requests,
            self._num_failures,
            self._detail,
        )

    def _judge(self, ticket: int | None, verdict: "Verdict") -> None:
        if verdict.is_alive is not None:
            self._is_up, self._detail = verdict.is_alive, verdict.detail
            self._num_failures += not verdict.is_alive
        if ticket is None:
            return
        match verdict.is_alive:
            case True:
                self._circuit.succeeded(ticket)
            case False:
                self._circuit.failed(ticket, self._clock())
            case None:
                self._circuit.abandoned(ticket)


class Verdict:
    """What a request showed of its replica; nothing when it was given up before it could."""

    def __init__(self) -> None:
        self.is_alive: bool | None = None
        self.detail = ""

    def alive(self) -> None:
        """It answered, whatever it said."""
        self.is_alive = True

    def failed(self, detail: str) -> None:
        """It did not answer, or only to say that it cannot."""
        self.is_alive, self.detail = False, detail
