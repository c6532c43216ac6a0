"""One embeddings request: cached vectors, the missing ones made together, all in order.

Every input is an entry of its own, so a list of old and new ones costs the new ones only. Knows no
HTTP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from gateway.auth import Tenant
from gateway.backends.base import Usage
from gateway.backends.embeddings import Embedding, EmbeddingBackend, EmbedWork
from gateway.backends.routing import Backends
from gateway.call import CacheReport, OnRecord, Watch
from gateway.errors import BackendError, BadRequest, ModelNotFound, NotCached
from gateway.pipeline import UNKNOWN_FINGERPRINT
from gateway.quotas import Quotas
from gateway.write_back import WriteBack
from semantic_layer import Bypass, CacheControl, CacheQuery, Hit, Judgement, Miss, SemanticCache

API = "embeddings"

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
    """The vectors in order of the inputs, and what the caches had of them.

    ``num_made_tokens`` counts the tokens of those that a model had to make.
    """

    report: CacheReport
    embeddings: list[Embedding]
    num_made_tokens: int = 0

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
        with Watch(call, self._on_record, has_first_token=False) as watch:
            control, namespace = call.tenant.rules.permit(call.model, call.control, call.namespace)
            watch.ticket = await self._quotas.admit(call.tenant)
            reply = await self._run(replace(call, control=control, namespace=namespace))
            watch.report = replace(reply.report, allowance=watch.allowance)
            watch.completed(Usage(prompt_tokens=reply.num_tokens), reply.num_made_tokens)
            return replace(reply, report=watch.report)

    async def _run(self, call: EmbedCall) -> EmbedReply:
        queries = self._queries(call)
        found = await self._cache.lookup_many(list(queries.values()), call.control)
        if isinstance(found, Bypass):
            made = dict(zip(queries, await self._make(call, list(queries)), strict=True))
            return _reply(call, CacheReport("bypass", Judgement()), made, made)
        outcomes = dict(zip(queries, found, strict=True))
        known = {key: read for key, hit in outcomes.items() if (read := _read(hit)) is not None}
        missing = [key for key in queries if key not in known]
        made = {}
        if missing:
            made = dict(zip(missing, await self._make(call, missing), strict=True))
            await self._store(call, queries, outcomes, made)
        return _reply(call, _report(outcomes, is_hit=not missing), known | made, made)

    def _queries(self, call: EmbedCall) -> dict[bytes, CacheQuery]:
        """Return one query per distinct input, in order of first appearance."""
        found = self._backends.find(call.model)
        fingerprint = found[1].fingerprint_with(call.headers) if found else UNKNOWN_FINGERPRINT
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
        with self._backends.following(found[0], info.model_id, API) as trace:
            made = await backend.embed(
                EmbedWork(
                    call.request_id,
                    info.model_id,
                    [call.inputs[at] for at in places],
                    [call.names[at] for at in places],
                    call.fields,
                    call.headers,
                    trace,
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

        await self._write_back.put(write)


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
    call: EmbedCall,
    report: CacheReport,
    by_key: Mapping[bytes, Embedding],
    made: Mapping[bytes, Embedding],
) -> EmbedReply:
    return EmbedReply(
        report,
        [by_key[_key(item)] for item in call.inputs],
        sum(embedding.num_tokens for embedding in made.values()),
    )
