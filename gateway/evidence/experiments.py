"""Experiments: two thresholds of one intent tried on halves of its traffic, on all gateways alike.

Each gateway counts its own look-ups and shares the counts; the wrong share at each threshold is
read from the intent's labels, whichever arm they came from.
"""

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.record import RequestRecord
from semantic_layer import Arm, Journal, Row, StoreUnavailable, Tally, Trial

EXPERIMENTS = "experiments"
TALLIES = "tallies:"
EVERY_S = 1.0
MAX_EXPERIMENTS = 200
MAX_GATEWAYS = 1000

State = Literal["running", "applied", "dropped"]
Share = Annotated[float, Meta(ge=0, le=1)]


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """Threshold ``a`` against ``b`` on one intent; ``a`` None is whatever is in force.

    ``budget`` (0..1) is the wrong share that b must stay within, ``most`` the look-ups per arm
    after which no difference is called. Times are Unix seconds.
    """

    id: str
    intent: str
    b: Share
    a: Share | None = None
    budget: Share = 0.01
    most: int = 10_000
    started_at: float = 0.0
    ended_at: float | None = None
    state: State = "running"


class _Counts(msgspec.Struct, frozen=True):
    """What one gateway counted: look-ups and hits of both arms."""

    num_a: int = 0
    hits_a: int = 0
    num_b: int = 0
    hits_b: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode_counts = msgspec.msgpack.Decoder(_Counts).decode
_decode = msgspec.msgpack.Decoder(Experiment).decode


class Experiments:
    """Starts, counts and ends experiments; a `Reader` of their journal.

    ``on_change`` is told the running ones whenever they changed here or elsewhere.

    Raises:
        StoreUnavailable: from any coroutine but `run`, when the store is slow or down.
    """

    def __init__(
        self,
        journal: Journal,
        on_change: Callable[[Sequence[Experiment]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._on_change = on_change
        self._clock = clock
        self._gateway = secrets.token_hex(8)
        self._rows: dict[str, Row] = {}
        self._all: dict[str, Experiment] = {}
        self._running: dict[str, Experiment] = {}
        self._own: defaultdict[str, dict[Arm, Tally]] = defaultdict(_nothing)
        self._unsaved: set[str] = set()

    @property
    def all(self) -> list[Experiment]:
        """Every experiment, newest first."""
        return sorted(self._all.values(), key=lambda one: one.started_at, reverse=True)

    def find(self, experiment_id: str) -> Experiment | None:
        """Return one experiment."""
        return self._all.get(experiment_id)

    def of_intent(self, intent: str | None) -> Experiment | None:
        """Return the running experiment of an intent."""
        return self._running.get(intent or "")

    async def start(self, experiment: Experiment) -> Experiment:
        """Start an experiment, under a new id."""
        started = msgspec.structs.replace(
            experiment, id=secrets.token_hex(6), started_at=self._clock()
        )
        await self._write(started)
        return started

    async def end(self, experiment: Experiment, state: State) -> Experiment:
        """End a running experiment."""
        ended = msgspec.structs.replace(experiment, state=state, ended_at=self._clock())
        await self._write(ended)
        return ended

    def record(self, record: RequestRecord) -> None:
        """Count a look-up that an experiment had a say in."""
        experiment = self.of_intent(record.intent)
        arm = record.judgement.arm
        if experiment is None or arm is None or record.outcome not in ("semantic", "miss"):
            return
        tallies = self._own[experiment.id]
        tallies[arm] += Tally(1, int(record.outcome == "semantic"))
        self._unsaved.add(experiment.id)

    async def tallies(self, experiment_id: str) -> dict[Arm, Tally]:
        """Return both arms' counts over all gateways."""
        await self._save()
        totals = _nothing()
        for row in await self._journal.after(f"{TALLIES}{experiment_id}", 0, MAX_GATEWAYS):
            counts = _read_counts(row.data)
            totals["a"] += Tally(counts.num_a, counts.hits_a)
            totals["b"] += Tally(counts.num_b, counts.hits_b)
        return totals

    async def run(self) -> None:
        """Share what was counted, for ever."""
        while True:
            await asyncio.sleep(EVERY_S)
            with suppress(StoreUnavailable):
                await self._save()

    def take(self, rows: Sequence[Row]) -> None:
        """Learn of experiments, oldest first."""
        for row in rows:
            known = self._rows.get(row.row_id)
            if known is None or row.seq > known.seq:
                self._rows[row.row_id] = row
        self._tell()

    def forget(self) -> None:
        """Run none."""
        self._rows.clear()
        self._tell()

    async def _write(self, experiment: Experiment) -> None:
        data = _encode(experiment)
        seq = await self._journal.put(EXPERIMENTS, {experiment.id: data}, most=MAX_EXPERIMENTS)
        self.take([Row(experiment.id, seq, data)])

    async def _save(self) -> None:
        while self._unsaved:
            experiment_id = next(iter(self._unsaved))
            own = self._own[experiment_id]
            counts = _Counts(own["a"].num, own["a"].hits, own["b"].num, own["b"].hits)
            name, data = f"{TALLIES}{experiment_id}", _encode(counts)
            self._unsaved.discard(experiment_id)
            try:
                await self._journal.put(name, {self._gateway: data}, most=MAX_GATEWAYS)
            except StoreUnavailable:
                self._unsaved.add(experiment_id)
                raise

    def _tell(self) -> None:
        read = (_read(row.data) for row in self._rows.values())
        self._all = {one.id: one for one in read if one is not None}
        running = {one.intent: one for one in self._all.values() if one.state == "running"}
        if running != self._running:
            self._running = running
            self._on_change(list(running.values()))


def trials(experiments: Sequence[Experiment]) -> dict[str, Trial]:
    """Return the trials that thresholds need to know of, by intent."""
    return {one.intent: Trial(one.id, one.a, one.b) for one in experiments}


def _nothing() -> dict[Arm, Tally]:
    return {"a": Tally(), "b": Tally()}


def _read_counts(data: bytes) -> _Counts:
    try:
        return _decode_counts(data)
    except msgspec.MsgspecError:
        return _Counts()


def _read(data: bytes) -> Experiment | None:
    """Return an experiment; None for what another version wrote."""
    try:
        return _decode(data)
    except msgspec.MsgspecError:
        return None
