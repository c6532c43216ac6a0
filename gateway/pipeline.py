"""One request: look up, else join or start a generation, relay it, write it back.

Knows no HTTP: `Call` in, `Reply` out. Errors that belong before the first byte are raised by
`Pipeline.run`, because it has already waited for the first event.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import msgspec

from gateway.answer import Answer, Assembler, decode, encode
from gateway.auth import Tenant
from gateway.backends.base import Backend, Delta, Event, ModelInfo, Usage, Work
from gateway.backends.routing import Backends
from gateway.errors import BackendError, ModelNotFound, NotCached
from gateway.flight import FlightGroup, Listener
from gateway.record import CacheOutcome, End, RequestRecord
from gateway.replay import beats
from gateway.write_back import WriteBack
from semantic_layer import Bypass, CacheControl, CacheQuery, Hit, Judgement, Miss, SemanticCache

UNKNOWN_FINGERPRINT = ""
WRITE_BACK_WAIT_S = 0.05

OnRecord = Callable[[RequestRecord], None]


@dataclass(frozen=True, slots=True)
class Call:
    """One validated request; ``body`` is its JSON without ``strata``, ``api`` names its shape."""

    request_id: str
    tenant: Tenant
    model: str
    body: dict[str, Any]
    control: CacheControl
    route: str
    namespace: str = ""
    api: str = "chat"


@dataclass(frozen=True, slots=True)
class CacheReport:
    """What the response headers say about the caches."""

    outcome: CacheOutcome
    judgement: Judgement
    entry_id: str | None = None
    age_s: float | None = None
    coalesced: bool = False


class Reply:
    """A started answer: read it once, as a stream or as a whole.

    A stored one is streamed at ``replay_tokens_per_s``; 0 is at once.
    """

    def __init__(
        self,
        report: CacheReport,
        source: "Answer | _Started",
        watch: "_Watch",
        replay_tokens_per_s: float = 0.0,
    ) -> None:
        self.report = report
        self._source = source
        self._watch = watch
        self._replay_tokens_per_s = replay_tokens_per_s

    async def events(self) -> AsyncIterator[Event]:
        """Give the events; closing early aborts the work nobody else listens to.

        Raises:
            BackendError: the backend broke after its first event.
        """
        with self._watch as watch:
            if isinstance(self._source, Answer):
                async for event in self._replayed(self._source):
                    watch.saw(event)
                    yield event
                watch.completed(self._source.usage)
                return
            async with self._source.listener as listener:
                watch.saw(self._source.first)
                yield self._source.first
                async for event in listener:
                    watch.saw(event)
                    yield event

    async def _replayed(self, answer: Answer) -> AsyncIterator[Event]:
        rate = self._replay_tokens_per_s
        started, due_s = time.perf_counter(), 0.0
        for beat in beats(answer, words=rate > 0):
            if due_s:
                await asyncio.sleep(started + due_s - time.perf_counter())
            yield beat.event
            if rate > 0:
                due_s += beat.num_tokens / rate

    async def answer(self) -> Answer:
        """Wait for the whole answer.

        Raises:
            BackendError: the backend broke or ended before the answer was complete.
        """
        if isinstance(self._source, Answer):
            with self._watch as watch:
                watch.completed(self._source.usage)
                return self._source
        assembler = Assembler()
        async for event in self.events():
            assembler.add(event)
        if assembler.answer is None:
            raise BackendError("the answer ended before it was complete")
        return assembler.answer

    async def aclose(self) -> None:
        """Give up an answer that was never read."""
        if not isinstance(self._source, Answer):
            await self._source.listener.aclose()
        self._watch.aborted()


@dataclass(frozen=True, slots=True)
class _Started:
    first: Event
    listener: Listener


class Pipeline:
    """Answers calls from the cheapest layer that can."""

    def __init__(
        self,
        *,
        cache: SemanticCache,
        backends: Backends,
        flights: FlightGroup,
        write_back: WriteBack,
        on_record: OnRecord,
        replay_tokens_per_s: float = 0.0,
    ) -> None:
        self._replay_tokens_per_s = replay_tokens_per_s
        self._cache = cache
        self._backends = backends
        self._flights = flights
        self._write_back = write_back
        self._on_record = on_record

    async def run(self, call: Call) -> Reply:
        """Look the call up, else start generating; returns once the first event is there.

        Raises:
            ModelNotFound: no backend serves the model and nothing is cached for it.
            NotCached: the caller allowed a cached answer only.
            BadRequest: the backend refuses the request as it is.
            BackendError: the backend cannot answer.
        """
        watch = _Watch(call, self._on_record)
        try:
            return await self._run(call, watch)
        except BaseException as error:
            watch.failed(error)
            raise

    def query(self, call: Call) -> CacheQuery:
        """Return the call as the caches see it."""
        found = self._backends.find(call.model)
        return CacheQuery(
            tenant=call.tenant.name,
            namespace=call.namespace,
            model=call.model,
            model_fingerprint=found[1].fingerprint if found else UNKNOWN_FINGERPRINT,
            request=call.body,
            api=call.api,
        )

    async def _run(self, call: Call, watch: "_Watch") -> Reply:
        found = self._backends.find(call.model)
        query = self.query(call)
        outcome = await self._cache.lookup(query, call.control)
        if isinstance(outcome, Hit):
            watch.report = _hit_report(outcome)
            try:
                answer = decode(outcome.entry.answer)
                return Reply(watch.report, answer, watch, self._replay_tokens_per_s)
            except msgspec.MsgspecError:  # written by another version: as good as absent
                outcome = await self._cache.lookup(query, replace(call.control, no_cache=True))
        assert not isinstance(outcome, Hit), "no-cache never hits"
        judgement = outcome.judgement if isinstance(outcome, Miss) else Judgement()
        report = CacheReport("miss" if isinstance(outcome, Miss) else "bypass", judgement)
        watch.report = report
        if found is None:
            raise ModelNotFound(f"the model {call.model!r} does not exist", param="model")
        if call.control.only_if_cached:
            raise NotCached("no cached answer, and the request allows nothing else")
        listener, coalesced = self._listen(call, query, outcome, found)
        if coalesced:
            watch.report = report = CacheReport(report.outcome, judgement, coalesced=True)
        return Reply(report, await _start(listener), watch)

    def _listen(
        self,
        call: Call,
        query: CacheQuery,
        outcome: Miss | Bypass,
        found: tuple[Backend, ModelInfo],
    ) -> tuple[Listener, bool]:
        def generate() -> AsyncIterator[Event]:
            return self._generate(call, query, outcome, found)

        if isinstance(outcome, Bypass):
            return self._flights.alone(generate), False
        if not call.control.no_cache:
            joined = self._flights.join(outcome.key)
            if joined is not None:
                return joined, True
        if not outcome.may_store:
            return self._flights.alone(generate), False
        return self._flights.lead(outcome.key, generate), False

    async def _generate(
        self,
        call: Call,
        query: CacheQuery,
        outcome: Miss | Bypass,
        found: tuple[Backend, ModelInfo],
    ) -> AsyncIterator[Event]:
        backend, info = found
        assembler = Assembler()
        events = backend.stream(
            Work(call.request_id, info.model_id, call.body, call.tenant.salt, call.api)
        )
        async for event in events:
            assembler.add(event)
            answer = assembler.answer
            if answer is not None and isinstance(outcome, Miss) and outcome.may_store:
                await self._store(query, call.control, outcome, answer)
            yield event
        if assembler.answer is None:
            raise BackendError("the backend ended its stream before the answer was complete")

    async def _store(
        self, query: CacheQuery, control: CacheControl, miss: Miss, answer: Answer
    ) -> None:
        if not answer.is_storable:
            return

        async def write() -> None:
            await self._cache.store(
                query,
                control,
                miss,
                encode(answer),
                answer_text=answer.text,
                exact_only=answer.is_exact_only,
            )

        await self._write_back.put(write, wait_s=WRITE_BACK_WAIT_S)


async def _start(listener: Listener) -> _Started:
    try:
        return _Started(await anext(listener), listener)
    except StopAsyncIteration:
        raise BackendError("the backend gave no answer") from None


def _hit_report(hit: Hit) -> CacheReport:
    return CacheReport(hit.layer, hit.judgement, hit.entry.entry_id, hit.age_s)


class _Watch:
    """Clocks one call and records it exactly once, however it ends."""

    def __init__(self, call: Call, on_record: OnRecord) -> None:
        self.report = CacheReport("miss", Judgement())
        self._call = call
        self._on_record: OnRecord | None = on_record
        self._started = time.perf_counter()
        self._ttft_s: float | None = None
        self._usage: Usage | None = None

    def saw(self, event: Event) -> None:
        if self._ttft_s is None and isinstance(event, Delta):
            self._ttft_s = time.perf_counter() - self._started
        usage = getattr(event, "usage", None)
        if usage is not None:
            self._usage = usage

    def completed(self, usage: Usage) -> None:
        self._usage = usage

    def failed(self, error: BaseException) -> None:
        if isinstance(error, NotCached):  # a plain miss; without usage it has no first token
            self._record("ok")
        else:
            self._record("error" if isinstance(error, Exception) else "aborted")

    def aborted(self) -> None:
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
        seconds = time.perf_counter() - self._started
        is_whole = end == "ok" and self._usage is not None
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
            )
        )
