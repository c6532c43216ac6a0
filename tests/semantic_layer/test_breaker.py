"""When calls are let through, when kept away, and how a circuit heals."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from semantic_layer.breaker import Breaker, BreakerSettings, Circuit, State
from semantic_layer.errors import StoreUnavailable
from tests.fakes.stores import Clock

QUICK = BreakerSettings(failures=3, deadline_s=0.05, backoff_s=1.0, max_backoff_s=4.0)


async def works() -> str:
    return "ok"


async def fails() -> str:
    raise StoreUnavailable("down")


def breaker(clock: Clock, failures: list[str] | None = None) -> Breaker:
    told = failures.append if failures is not None else None
    return Breaker("redis", QUICK, on_failure=told, clock=clock)


async def fail(guard: Breaker, times: int) -> None:
    for _ in range(times):
        with pytest.raises(StoreUnavailable, match="redis: down"):
            await guard.call(fails)


class CircuitMachine(RuleBasedStateMachine):
    """Any order of calls, outcomes late or in time, and waits, against what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.circuit = Circuit(QUICK)
        self.now = 0.0
        self.opened_at: float | None = None
        self.tickets: list[int] = []
        self.in_a_row = 0
        self.was_abandoned = False

    def note(self, before: State) -> None:
        if before is not State.OPEN and self.circuit.state is State.OPEN:
            self.opened_at = self.now
            self.in_a_row = 0

    @rule()
    def call(self) -> None:
        before = self.circuit.state
        ticket = self.circuit.admit(self.now)
        match before:
            case State.CLOSED:
                assert ticket is not None
            case State.HALF_OPEN:
                assert ticket is None
            case State.OPEN:
                assert self.opened_at is not None
                if self.now < self.opened_at + QUICK.backoff_s and ticket is not None:
                    assert self.was_abandoned
        if ticket is not None:
            self.tickets.append(ticket)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), outcome=st.sampled_from(["ok", "failed", "abandoned"]))
    def end(self, data: st.DataObject, outcome: str) -> None:
        ticket = self.tickets.pop(data.draw(st.integers(0, len(self.tickets) - 1)))
        before, is_current = self.circuit.state, ticket == self.circuit._epoch
        if outcome == "ok":
            self.circuit.succeeded(ticket)
            if is_current:
                assert self.circuit.state is State.CLOSED
                self.in_a_row = 0
        elif outcome == "failed":
            self.circuit.failed(ticket, self.now)
            if is_current:
                self.in_a_row += 1
                opens = before is State.HALF_OPEN or self.in_a_row >= QUICK.failures
                assert (self.circuit.state is State.OPEN) == opens
        else:
            self.circuit.abandoned(ticket)
            self.was_abandoned = True
        if not is_current:
            assert self.circuit.state is before
        self.note(before)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def heals(self) -> None:
        """After the longest back-off an open circuit always lets one probe pass."""
        if self.circuit.state is State.OPEN:
            later = self.now + QUICK.max_backoff_s
            assert self.circuit._retry_at <= later


CircuitMachine.TestCase.settings = settings(max_examples=100, deadline=None)
TestCircuit = CircuitMachine.TestCase


def open_circuit(now: float = 0.0) -> Circuit:
    circuit = Circuit(QUICK)
    for _ in range(QUICK.failures):
        ticket = circuit.admit(now)
        assert ticket is not None
        circuit.failed(ticket, now)
    return circuit


def test_backoff_doubles_to_its_limit_when_probes_fail() -> None:
    """1, 2, 4, 4 … seconds; a probe that works closes the circuit and forgets them."""
    circuit, now = open_circuit(), 0.0
    for pause in (1.0, 2.0, 4.0, 4.0):
        assert circuit.admit(now + pause - 0.001) is None
        now += pause
        probe = circuit.admit(now)
        assert probe is not None
        assert circuit.admit(now + 100) is None
        circuit.failed(probe, now)
    probe = circuit.admit(now + 4.0)
    assert probe is not None
    circuit.succeeded(probe)
    assert circuit.state is State.CLOSED
    again = open_circuit(now)
    assert again.admit(now + 0.999) is None
    assert again.admit(now + 1.0) is not None


def test_late_outcome_changes_nothing_when_the_circuit_moved_on() -> None:
    """A slow call from before the opening neither closes nor re-opens it."""
    circuit = Circuit(QUICK)
    slow = circuit.admit(0.0)
    assert slow is not None
    for _ in range(QUICK.failures):
        ticket = circuit.admit(0.0)
        assert ticket is not None
        circuit.failed(ticket, 0.0)
    circuit.succeeded(slow)
    assert circuit.state is State.OPEN
    assert circuit.admit(1.0) is not None
    circuit.failed(slow, 1.0)
    circuit.abandoned(slow)
    assert circuit.state is State.HALF_OPEN


async def test_result_comes_through_when_the_part_works() -> None:
    """A closed breaker is invisible."""
    guard = breaker(Clock())
    assert await guard.call(works) == "ok"
    assert not guard.is_open


async def test_no_call_is_made_when_open() -> None:
    """Three failures in a row open it; then nothing is awaited, and failures are not counted."""
    told, calls = list[str](), list[int]()
    guard = breaker(Clock(), told)
    await fail(guard, 2)
    assert await guard.call(works) == "ok"
    await fail(guard, 3)
    assert guard.is_open

    def count() -> Awaitable[str]:
        calls.append(1)
        return works()

    with pytest.raises(StoreUnavailable, match="breaker open"):
        await guard.call(count)
    assert calls == []
    assert told == ["redis"] * 5


async def test_one_probe_heals_when_the_back_off_is_over() -> None:
    """While the probe is under way others are kept away; its success lets all through."""
    clock = Clock()
    guard, gate = breaker(clock), asyncio.Event()
    await fail(guard, 3)
    clock.now += 1.0

    async def probe() -> str:
        await gate.wait()
        return "healed"

    task = asyncio.create_task(guard.call(probe, deadline_s=10))
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="breaker open"):
        await guard.call(works)
    gate.set()
    assert await task == "healed"
    assert await guard.call(works) == "ok"


async def test_slow_call_is_a_failure_when_its_deadline_passes() -> None:
    """The call is cancelled at the deadline, and the error is the named one."""
    told, cancelled = list[str](), asyncio.Event()
    guard = breaker(Clock(), told)

    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    with pytest.raises(StoreUnavailable, match="deadline passed"):
        await guard.call(slow)
    assert cancelled.is_set()
    assert told == ["redis"]
    with pytest.raises(StoreUnavailable):
        await guard.call(slow, deadline_s=0.0)


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), TimeoutError("slow")])
async def test_broken_wire_is_the_named_error_when_a_call_raises_it(error: Exception) -> None:
    """Callers need to catch one error only."""
    guard = breaker(Clock())

    async def broken() -> str:
        raise error

    with pytest.raises(StoreUnavailable, match=str(error)):
        await guard.call(broken)


async def test_our_own_bug_is_not_hidden_when_a_call_raises_it() -> None:
    """An error that is no outage comes through and does not open the breaker."""
    guard = breaker(Clock())

    async def bug() -> str:
        raise ZeroDivisionError

    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            await guard.call(bug)
    assert not guard.is_open


@pytest.mark.parametrize("make", [works, fails])
async def test_next_call_probes_when_the_prober_went_away(
    make: Callable[[], Awaitable[str]],
) -> None:
    """A cancelled probe decides nothing and blocks nobody."""
    clock = Clock()
    guard = breaker(clock)
    await fail(guard, 3)
    clock.now += 1.0
    task = asyncio.create_task(guard.call(lambda: asyncio.Event().wait(), deadline_s=10))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert guard.is_open
    if make is works:
        assert await guard.call(make) == "ok"
        assert not guard.is_open
    else:
        await fail(guard, 1)
        assert guard.is_open


async def test_circuit_opens_when_one_call_fails_for_many() -> None:
    """Callers who wait for one call count each, so that sharing a call heals nothing later."""
    clock = Clock()
    guarded = breaker(clock)
    with pytest.raises(StoreUnavailable):
        await guarded.call(fails, num_callers=QUICK.failures)
    assert guarded.is_open
