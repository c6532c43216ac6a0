"""One request: look up, else join or start a generation, relay it, write it back.

Knows no HTTP: `Call` in, `Reply` out. Errors that belong before the first byte are raised by
`Pipeline.run`, because it has already waited for the first event.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol

import msgspec

from gateway.answer import Answer, Assembler, decode, encode
from gateway.backends.base import Backend, Event, ModelInfo, Work
from gateway.backends.routing import Backends
from gateway.call import CacheReport, Call, OnRecord, Watch
from gateway.errors import BackendError, ModelNotFound, NotCached
from gateway.flight import FlightGroup, Listener
from gateway.herd import Herd
from gateway.quotas import Allowance, Quotas
from gateway.record import CacheOutcome, Spoken
from gateway.refresh import Refresher
from gateway.reply import Reply, started
from gateway.write_back import WriteBack
from semantic_layer import (
    Bypass,
    CacheControl,
    CacheQuery,
    Entry,
    Hit,
    Miss,
    SemanticCache,
)

UNKNOWN_FINGERPRINT = ""


class Witness(Protocol):
    """Hears of answers that tell something of the semantic layer; does its work elsewhere."""

    def served(self, call: Call, hit: Hit) -> None:
        """Hear of a semantic hit."""
        ...

    def generated(self, call: Call, miss: Miss, answer: Answer) -> None:
        """Hear of a whole answer that a model gave."""
        ...


class Pipeline:
    """Answers calls from the cheapest layer that can."""

    def __init__(
        self,
        *,
        cache: SemanticCache,
        backends: Backends,
        flights: FlightGroup,
        write_back: WriteBack,
        quotas: Quotas,
        on_record: OnRecord,
        herd: Herd | None = None,
        refresher: Refresher | None = None,
        evidence: Witness | None = None,
        replay_tokens_per_s: float = 0.0,
    ) -> None:
        self.replay_tokens_per_s = replay_tokens_per_s
        self._cache = cache
        self._backends = backends
        self._flights = flights
        self._write_back = write_back
        self._quotas = quotas
        self._on_record = on_record
        self._herd = herd
        self._refresher = refresher or Refresher()
        self._evidence = evidence

    async def run(self, call: Call) -> Reply:
        """Look the call up, else start generating; returns once the first event is there.

        Raises:
            Forbidden: the tenant may not use the model or namespace.
            RateLimited: the tenant has used up a limit.
            ModelNotFound: no backend serves the model and nothing is cached for it.
            NotCached: the caller allowed a cached answer only.
            BadRequest: the backend refuses the request as it is.
            BackendError: the backend cannot answer.
        """
        watch = Watch(call, self._on_record)
        if not call.control.no_store:
            watch.spoken = Spoken(call.body, call.namespace)
        try:
            control, namespace = call.tenant.rules.permit(call.model, call.control, call.namespace)
            watch.ticket = await self._quotas.admit(call.tenant)
            if control is not call.control or namespace != call.namespace:
                call = replace(call, control=control, namespace=namespace)
            return await self._run(call, watch)
        except BaseException as error:
            watch.failed(error)
            raise

    def query(self, call: Call) -> CacheQuery:
        """Return the call as the caches see it."""
        return _query(call, self._backends.find(call.model))

    async def _run(self, call: Call, watch: Watch) -> Reply:
        found = self._backends.find(call.model)
        query = _query(call, found)
        outcome = await self._cache.lookup(query, call.control)
        if isinstance(outcome, Hit):
            watch.report = _hit_report(outcome, watch.allowance)
            try:
                answer = decode(outcome.entry.answer)
                self._served(call, outcome, watch)
                if outcome.stale_s is not None and found is not None:
                    self._refresh(call, query, found, outcome.entry.entry_id)
                return Reply(watch.report, answer, watch, self.replay_tokens_per_s)
            except msgspec.MsgspecError:  # written by another version: as good as absent
                outcome = await self._cache.lookup(query, replace(call.control, no_cache=True))
        assert not isinstance(outcome, Hit), "no-cache never hits"
        layer: CacheOutcome = "miss" if isinstance(outcome, Miss) else "bypass"
        watch.report = CacheReport(layer, outcome.judgement, allowance=watch.allowance)
        watch.stored_as = outcome.key if isinstance(outcome, Miss) and outcome.may_store else None
        if found is None:
            raise ModelNotFound(f"the model {call.model!r} does not exist", param="model")
        if call.control.only_if_cached:
            raise NotCached("no cached answer, and the request allows nothing else", watch.report)
        listener = await self._listen(call, query, outcome, found, watch)
        return Reply(watch.report, await started(listener), watch)

    def _served(self, call: Call, hit: Hit, watch: Watch) -> None:
        if watch.spoken is not None:
            watch.spoken.stored, watch.spoken.answer = hit.entry.text or "", hit.entry.answer_text
        if self._evidence is not None and hit.layer == "semantic":
            self._evidence.served(call, hit)

    def _refresh(
        self,
        call: Call,
        query: CacheQuery,
        found: tuple[Backend, ModelInfo],
        entry_id: str,
    ) -> None:
        """Make a stale answer anew: nobody waits for it, and no tenant is charged."""
        control = replace(call.control, no_cache=False, only_if_cached=False)

        async def opened() -> Listener | None:
            missed = await self._cache.lookup(query, replace(control, no_cache=True))
            if not isinstance(missed, Miss) or not missed.may_store:
                return None
            quiet = Watch(call, lambda _: None)
            return await self._listen(replace(call, control=control), query, missed, found, quiet)

        if not call.control.no_store:
            self._refresher.start(entry_id, opened)

    async def _listen(
        self,
        call: Call,
        query: CacheQuery,
        outcome: Miss | Bypass,
        found: tuple[Backend, ModelInfo],
        watch: Watch,
    ) -> Listener:
        def generate() -> AsyncIterator[Event]:
            return self._generate(call, query, outcome, found)

        if isinstance(outcome, Bypass):
            return self._flights.alone(generate)
        if call.control.no_cache:
            return self._flights.lead(outcome.key, generate)
        joined = await self._joined(query, call.control, outcome.key)
        if joined is not None:
            watch.coalesced()
            return joined
        if not outcome.may_store:
            return self._flights.alone(generate)
        if self._herd is None:
            return self._flights.lead(outcome.key, generate)
        herd = self._herd

        async def stored() -> Answer | None:
            return _decoded(await self._cache.stored(query, call.control, outcome.key))

        return self._flights.lead(
            outcome.key,
            lambda: herd.events(outcome.key, stored, generate, watch.coalesced),
        )

    async def _joined(self, query: CacheQuery, control: CacheControl, key: str) -> Listener | None:
        """Join an identical request's generation, unless its answer was withdrawn meanwhile."""
        joined = self._flights.join(key)
        if joined is None or not await self._cache.is_withdrawn(query, control, key, joined.age_s):
            return joined
        async with joined:
            return self._flights.join(key, besides=joined)

    async def _generate(
        self,
        call: Call,
        query: CacheQuery,
        outcome: Miss | Bypass,
        found: tuple[Backend, ModelInfo],
    ) -> AsyncIterator[Event]:
        backend, info = found
        assembler = Assembler()
        work = Work(
            call.request_id, info.model_id, call.body, call.tenant.salt, call.headers, call.api
        )
        events = self._backends.stream(backend, work, call.tenant.rules.allows_model)
        async for event in events:
            assembler.add(event)
            answer = assembler.answer
            if answer is not None and isinstance(outcome, Miss) and outcome.may_store:
                await self._store(query, call.control, outcome, answer)
            yield event
        if assembler.answer is None:
            raise BackendError("the backend ended its stream before the answer was complete")
        if self._evidence is not None and isinstance(outcome, Miss):
            self._evidence.generated(call, outcome, assembler.answer)

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

        await self._write_back.put(write)


def _decoded(entry: Entry | None) -> Answer | None:
    try:
        return decode(entry.answer) if entry is not None else None
    except msgspec.MsgspecError:  # written by another version: as good as absent
        return None


def _query(call: Call, found: tuple[Backend, ModelInfo] | None) -> CacheQuery:
    return CacheQuery(
        tenant=call.tenant.name,
        namespace=call.namespace,
        model=call.model,
        model_fingerprint=found[1].fingerprint_with(call.headers) if found else UNKNOWN_FINGERPRINT,
        request=found[1].said(call.body) if found else call.body,
        api=call.api,
        num_bytes=call.num_bytes,
    )


def _hit_report(hit: Hit, allowance: Allowance) -> CacheReport:
    return CacheReport(
        hit.layer,
        hit.judgement,
        hit.entry.entry_id,
        hit.age_s,
        allowance=allowance,
        stale_s=hit.stale_s,
    )
