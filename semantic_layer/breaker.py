"""Keep a slow or broken part from slowing every request; knows no store and no metrics."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from semantic_layer.errors import StoreUnavailable

T = TypeVar("T")


class State(Enum):
    """Where a circuit stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerSettings:
    """When a circuit opens and how it heals; times in seconds.

    ``failures`` in a row open it for ``backoff_s``, which doubles with each failed probe up to
    ``max_backoff_s``.
    """

    failures: int = 5
    deadline_s: float = 0.25
    backoff_s: float = 0.5
    max_backoff_s: float = 30.0


class Circuit:
    """The pure state machine: told of successes and failures at a time, says who may pass.

    Times are monotonic seconds given by the caller. In the half-open state one probe passes; its
    outcome, reported under the ticket that let it pass, decides. A ticket of an earlier state is
    too old to count.
    """

    def __init__(self, settings: BreakerSettings) -> None:
        self._settings = settings
        self._failures = 0
        self._backoff_s = settings.backoff_s
        self._retry_at = 0.0
        self._epoch = 0
        self.state = State.CLOSED

    def would_admit(self, now: float) -> bool:
        """Say whether `admit` would give a ticket; changes nothing."""
        return self.state is State.CLOSED or (self.state is State.OPEN and now >= self._retry_at)

    def admit(self, now: float) -> int | None:
        """Return a ticket when a call may pass, else None."""
        if self.state is State.CLOSED:
            return self._epoch
        if self.state is State.OPEN and now >= self._retry_at:
            self._move(State.HALF_OPEN)
            return self._epoch
        return None

    def succeeded(self, ticket: int) -> None:
        """Take note that the call with this ticket worked."""
        if ticket != self._epoch:
            return
        self._failures = 0
        if self.state is State.HALF_OPEN:
            self._backoff_s = self._settings.backoff_s
            self._move(State.CLOSED)

    def failed(self, ticket: int, now: float, num_callers: int = 1) -> None:
        """Take note that the call with this ticket failed, which so many waited for."""
        if ticket != self._epoch:
            return
        self._failures += num_callers
        if self.state is State.HALF_OPEN:
            self._backoff_s = min(self._backoff_s * 2, self._settings.max_backoff_s)
            self._open(now)
        elif self._failures >= self._settings.failures:
            self._open(now)

    def abandoned(self, ticket: int) -> None:
        """Take note that the caller went away before the outcome; the next call may probe."""
        if ticket == self._epoch and self.state is State.HALF_OPEN:
            self._move(State.OPEN)

    def _open(self, now: float) -> None:
        self._retry_at = now + self._backoff_s
        self._move(State.OPEN)

    def _move(self, state: State) -> None:
        self._epoch += 1
        self._failures = 0
        self.state = state


class Breaker:
    """Guard one part: each call has a deadline, and while the circuit is open none is made.

    ``on_failure`` is told the part's name once for each failed call, not for calls kept away.
    """

    def __init__(
        self,
        part: str,
        settings: BreakerSettings | None = None,
        *,
        on_failure: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.part = part
        self._settings = settings or BreakerSettings()
        self._on_failure = on_failure
        self._clock = clock
        self._circuit = Circuit(self._settings)

    @property
    def is_open(self) -> bool:
        """Whether calls are kept away, or only a probe is let through."""
        return self._circuit.state is not State.CLOSED

    async def call(
        self,
        make: Callable[[], Awaitable[T]],
        *,
        deadline_s: float | None = None,
        num_callers: int = 1,
    ) -> T:
        """Await what ``make`` returns, within the deadline.

        A failure counts once for each of those who wait for this one call.

        Raises:
            StoreUnavailable: the circuit is open, the deadline passed, or the part is down.
        """
        ticket = self._circuit.admit(self._clock())
        if ticket is None:
            raise StoreUnavailable(f"{self.part}: breaker open")
        limit_s = self._settings.deadline_s if deadline_s is None else deadline_s
        try:
            async with asyncio.timeout(limit_s):
                result = await make()
        except (TimeoutError, StoreUnavailable, OSError) as error:
            self._circuit.failed(ticket, self._clock(), num_callers)
            if self._on_failure is not None:
                self._on_failure(self.part)
            raise StoreUnavailable(f"{self.part}: {str(error) or 'deadline passed'}") from error
        except BaseException:
            self._circuit.abandoned(ticket)
            raise
        self._circuit.succeeded(ticket)
        return result
