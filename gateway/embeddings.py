"""One embeddings request: cached vectors, the missing ones made together, all in order.

Every input is an entry of its own, so a list of old and new ones costs the new ones only. Knows no
HTTP.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from gateway.auth import Tenant
from gateway.backends.base import Usage
from gateway.backends.embeddings import Embedding, EmbeddingBackend, EmbedWork
from gateway.backends.routing import Backends
from gateway.call import CacheReport
from gateway.errors import (
    BackendError,
    BadRequest,
    Forbidden,
    ModelNotFound,
    NotCached,
    RateLimited,
)
from gateway.pipeline import UNKNOWN_FINGERPRINT
from gateway.quotas import Quotas, Ticket
from gateway.record import End, RequestRecord
from gateway.write_back import WriteBack
from semantic_layer import Bypass, CacheControl, CacheQuery, Hit, Judgement, Miss, SemanticCache

API = "embeddings"
WRITE_BACK_WAIT_S = 0.05

OnRecord = Callable[[RequestRecord], None]
Input = str | list[int]


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """One validated request.

    ``names`` are what the client calls its inputs; ``fields`` says how to embed, unknown fields
    kept.
    """

    request_id: str
    tenant: Tenant
    model: str
    inputs: tuple[Input, ...]
    names: tuple[str, ...]
    fields: dict[str, Any]
    control: CacheControl
    route: str
    namespace: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmbedReply:
    """The vectors in order of the inputs, and what the caches had of them."""

    report: CacheReport
    embeddings: list[Embedding]

    @property
    def num_tokens(self) -> int:
        """Tokens of all inputs."""
        return sum(embedding.num_tokens for embedding in self.embeddings)


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Embedding)


class Embeddings:
    """Answers embeddings requests from the cache and from the backends."""

    def __init__(
        self,
        *,
        cache: SemanticCache,
        backends: Backends,
        write_back: WriteBack,
        quotas: Quotas,
        on_record: OnRecord,
    ) -> None:
        self._cache = cache
        self._backends = backends
        self._write_back = write_back
        self._quotas = quotas
        self._on_record = on_record

    async def run(self, call: EmbedCall) -> EmbedReply:
        """Return a vector for every input.

        Raises:
            Forbidden: the tenant may not use the model or namespace.
            RateLimited: the tenant has used up a limit.
            ModelNotFound: no backend serves the model and not all inputs are cached.
            NotCached: the caller allowed cached vectors only.
            BadRequest: the model makes no embeddings, or refuses an input.
            BackendError: the backend cannot answer.
        """
        started = time.perf_counter()
        report = CacheReport("miss", Judgement())
        end: End = "aborted"
        usage: Usage | None = None
        ticket: Ticket | None = None
        try:
            control, namespace = call.tenant.rules.permit(call.model, call.control, call.namespace)
            ticket = await self._quotas.admit(call.tenant)
            reply = await self._run(replace(call, control=control, namespace=namespace))
            reply = replace(reply, report=replace(reply.report, allowance=ticket.allowance))
            report, end = reply.report, "ok"
            usage = Usage(prompt_tokens=reply.num_tokens)
        except (Forbidden, RateLimited):
            end = "rejected"
            raise
        except NotCached:
            end = "ok"
            raise
        except Exception:
            end = "error"
            raise
        else:
            return reply
        finally:
            if ticket is not None:
                ticket.end(usage.prompt_tokens if usage and report.outcome != "exact" else 0)
            self._on_record(_record(call, report, end, time.perf_counter() - started, usage))

    async def _run(self, call: EmbedCall) -> EmbedReply:
        queries = self._queries(call)
        found = await self._cache.lookup_many(list(queries.values()), call.control)
        if isinstance(found, Bypass):
            made = await self._make(call, list(queries))
            return _reply(call, CacheReport("bypass", Judgement()), made, list(queries))
        outcomes = dict(zip(queries, found, strict=True))
        known = {key: read for key, hit in outcomes.items() if (read := _read(hit)) is not None}
        missing = [key for key in queries if key not in known]
        if missing:
            made = await self._make(call, missing)
            await self._store(call, queries, outcomes, dict(zip(missing, made, strict=True)))
            known |= zip(missing, made, strict=True)
        report = _report(outcomes, is_hit=not missing)
        return _reply(call, report, [known[key] for key in queries], list(queries))

    def _queries(self, call: EmbedCall) -> dict[bytes, CacheQuery]:
        """Return one query per distinct input, in order of first appearance."""
        found = self._backends.find(call.model)
        fingerprint = found[1].fingerprint if found else UNKNOWN_FINGERPRINT
        return {
            _key(item): CacheQuery(
                tenant=call.tenant.name,
                namespace=call.namespace,
                model=call.model,
                model_fingerprint=fingerprint,
                request={**call.fields, "input": item},
                api=API,
            )
            for item in call.inputs
        }

    async def _make(self, call: EmbedCall, keys: Sequence[bytes]) -> list[Embedding]:
        found = self._backends.find(call.model)
        if found is None:
            raise ModelNotFound(f"the model {call.model!r} does not exist", param="model")
        if call.control.only_if_cached:
            raise NotCached("no cached vector, and the request allows nothing else")
        backend, info = found
        if not isinstance(backend, EmbeddingBackend):
            raise BadRequest(f"the model {call.model!r} makes no embeddings", param="model")
        first = {_key(item): at for at, item in reversed(list(enumerate(call.inputs)))}
        places = [first[key] for key in keys]
        made = await backend.embed(
            EmbedWork(
                call.request_id,
                info.model_id,
                [call.inputs[at] for at in places],
                [call.names[at] for at in places],
                call.fields,
                call.headers,
            )
        )
        if len(made) != len(keys):
            raise BackendError(f"the backend gave {len(made)} vectors for {len(keys)} inputs")
        return made

    async def _store(
        self,
        call: EmbedCall,
        queries: dict[bytes, CacheQuery],
        outcomes: dict[bytes, Hit | Miss],
        made: dict[bytes, Embedding],
    ) -> None:
        if call.control.no_store:
            return

        async def write() -> None:
            for key, embedding in made.items():
                miss = outcomes[key]
                if isinstance(miss, Miss):
                    await self._cache.store(
                        queries[key],
                        call.control,
                        miss,
                        _encode(embedding),
                        answer_text="",
                        exact_only=True,
                    )

        await self._write_back.put(write, wait_s=WRITE_BACK_WAIT_S)


def _key(item: Input) -> bytes:
    return msgspec.json.encode(item)


def _read(outcome: Hit | Miss) -> Embedding | None:
    if isinstance(outcome, Miss):
        return None
    try:
        return _decoder.decode(outcome.entry.answer)
    except msgspec.MsgspecError:  # written by another version: as good as absent
        return None


def _report(outcomes: dict[bytes, Hit | Miss], *, is_hit: bool) -> CacheReport:
    hits = [hit for hit in outcomes.values() if isinstance(hit, Hit)]
    if not is_hit:
        return CacheReport("miss", Judgement())
    return CacheReport(
        "exact",
        Judgement(),
        entry_id=hits[0].entry.entry_id if len(hits) == 1 else None,
        age_s=max(hit.age_s for hit in hits),
    )


def _reply(
    call: EmbedCall, report: CacheReport, embeddings: Sequence[Embedding], keys: Sequence[bytes]
) -> EmbedReply:
    by_key = dict(zip(keys, embeddings, strict=True))
    return EmbedReply(report, [by_key[_key(item)] for item in call.inputs])


def _record(
    call: EmbedCall, report: CacheReport, end: End, seconds: float, usage: Usage | None
) -> RequestRecord:
    return RequestRecord(
        request_id=call.request_id,
        route=call.route,
        tenant=call.tenant.name,
        model=call.model,
        intent=None,
        outcome=report.outcome,
        end=end,
        seconds=seconds,
        ttft_s=None,
        usage=usage,
    )
