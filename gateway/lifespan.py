"""Opens and closes the parts of one gateway: the only place that knows how they fit together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack

from gateway.admin.session import Sessions
from gateway.auth import KeyRing
from gateway.backends.local import LocalBackend
from gateway.backends.routing import Backends
from gateway.call import OnRecord
from gateway.embeddings import Embeddings
from gateway.evidence import Evidence
from gateway.flight import FlightGroup
from gateway.intent_settings import examples_of
from gateway.kept_responses import KeptResponses
from gateway.ledger import Ledger
from gateway.local_models import embedding_model_of, local_backends, open_embedder, start_engine
from gateway.metrics import Metrics
from gateway.model_names import ModelNames
from gateway.parts import Parts
from gateway.pipeline import Pipeline
from gateway.policies import cache_policy, evidence_policy
from gateway.public_prefixes import warm_public
from gateway.record import RequestRecord
from gateway.refresh import Refresher
from gateway.series import TrafficSeries
from gateway.settings import Settings, SettingsError
from gateway.stats import TrafficStats
from gateway.stores import (
    open_evidence_journal,
    open_herd,
    open_index,
    open_kept_records,
    open_quotas,
    open_redis,
    open_store,
)
from gateway.traces import Traces, Untraced
from gateway.upstream_pool import UpstreamPool
from gateway.upstreams import fallbacks_of, relayed_headers
from gateway.verifiers import open_rewriter, open_verifier, pin_instructions
from gateway.write_back import WriteBack
from semantic_layer import (
    Embedder,
    IntentClassifier,
    IntentTeacher,
    Scorer,
    SemanticCache,
    SharedIndex,
    TextTooLong,
    Thresholds,
)

SWEEP_EVERY_S = 60.0
DRAIN_S = 1.0
CANCEL_AGAIN_S = 0.5
LOAD_TIMEOUT_S = 1800.0


@contextlib.asynccontextmanager
async def open_parts(settings: Settings, traces: Traces) -> AsyncIterator[Parts]:
    """Open everything the settings ask for; on leaving, close it in the opposite order.

    Raises:
        StrataError, SemanticLayerError, PrefixLayerError: a part that the settings ask for cannot
            be opened; the message is one clear line.
    """
    async with AsyncExitStack() as stack:
        stack.push_async_callback(traces.close)
        names, key_ring = ModelNames(), KeyRing(settings.api_keys_file)
        metrics, stats = Metrics(names), TrafficStats(names)
        series = TrafficSeries()
        engine = await start_engine(stack, settings)
        store_url = await open_redis(settings, stack)
        store = open_store(settings, store_url)
        quotas = open_quotas(settings, store_url, metrics)
        stack.push_async_callback(quotas.close)
        records = open_kept_records(settings, store_url)
        stack.push_async_callback(records.close)
        pool = await _open_upstreams(settings, metrics, traces, stack)
        upstreams = pool.upstreams
        embedding_model = embedding_model_of(settings)
        if embedding_model is not None:
            stack.push_async_callback(embedding_model.close)
        served_here = local_backends(settings, engine, embedding_model, traces.phase)
        backends = Backends(
            [*served_here, *upstreams.values()],
            fallbacks_of(settings),
            metrics.count_fallback,
            None if isinstance(traces, Untraced) else traces,
        )
        stack.push_async_callback(backends.close)
        embedder = await open_embedder(settings, embedding_model, upstreams)
        index = open_index(settings, embedder)
        cache = SemanticCache(
            store=store,
            index=index,
            embedder=embedder,
            policy=cache_policy(settings),
            scorer=await Scorer.matching(embedder) if embedder else None,
            verifier=await open_verifier(settings, backends),
            rewriter=open_rewriter(settings, backends),
            thresholds=Thresholds.within(settings.semantic.wrong_hit_budget),
            detect=await _taught(settings, embedder, stack),
            observe=traces.observe(metrics.observe_lookup),
            on_failure=metrics.count_store_failure,
            on_private=metrics.count_private,
            on_removed=metrics.count_removed,
        )
        stack.push_async_callback(cache.close)
        if isinstance(index, SharedIndex):
            await _in_background(stack, index.follow())
        names.know(backends.lists, lambda name: backends.find(name) is not None)
        evidence = Evidence(
            open_evidence_journal(settings, store_url),
            cache=cache,
            backends=backends,
            metrics=metrics,
            policy=evidence_policy(settings),
            tenants=lambda: [tenant.name for tenant in key_ring.tenants()],
        )
        stack.push_async_callback(evidence.close)
        await evidence.start()
        await _in_background(stack, evidence.run())
        ledger = Ledger(backends.prices_of, metrics.count_money)
        write_back = WriteBack(settings.cache.write_queue, metrics.count_dropped, traces.carried)
        flights = FlightGroup()
        await _in_background(stack, _keep_up(cache))
        await _in_background(stack, write_back.run())
        stack.push_async_callback(write_back.drain, DRAIN_S)
        if engine is not None:
            await engine.wait_ready(LOAD_TIMEOUT_S)
        local = next((b for b in served_here if isinstance(b, LocalBackend)), None)
        if local is not None:
            await pin_instructions(settings, local)
        if local is not None and settings.local.public_prefixes is not None:
            await warm_public(local, settings.local.public_prefixes, settings.layout)

        listeners = (traces, metrics, stats, series, ledger, evidence)
        record = _to_all([each.record for each in listeners])
        pipeline = Pipeline(
            cache=cache,
            backends=backends,
            flights=flights,
            write_back=write_back,
            quotas=quotas,
            on_record=record,
            refresher=_refresher(metrics, stack),
            herd=open_herd(settings, write_back, stack),
            evidence=evidence.gatherer,
            replay_tokens_per_s=settings.cache.replay_tokens_per_s,
        )
        yield Parts(
            settings=settings,
            key_ring=key_ring,
            pipeline=pipeline,
            embeddings=Embeddings(
                cache=cache,
                backends=backends,
                write_back=write_back,
                quotas=quotas,
                on_record=record,
            ),
            cache=cache,
            backends=backends,
            engine=engine,
            metrics=metrics,
            stats=stats,
            series=series,
            ledger=ledger,
            upstreams=upstreams,
            pool=pool,
            relayed_headers=relayed_headers(settings.upstreams),
            quotas=quotas,
            local=local,
            responses=KeptResponses(
                records,
                settings.cache.responses_ttl_s,
                lambda: metrics.count_store_failure("responses"),
            ),
            evidence=evidence,
            sessions=Sessions(records),
        )


def _to_all(listeners: Sequence[OnRecord]) -> OnRecord:
    def record(request: RequestRecord) -> None:
        for listener in listeners:
            listener(request)

    return record


async def _taught(
    settings: Settings, embedder: Embedder | None, stack: AsyncExitStack
) -> IntentClassifier:
    """Let the intents be learnt: at once for the bundled embedder, beside the traffic for others.

    Raises:
        SettingsError: an example is longer than the embedder reads.
    """
    intents = IntentClassifier()
    if embedder is None:
        return intents
    own = examples_of(settings.semantic.intents)
    teacher = IntentTeacher(embedder, own, settings.data_dir / "intents")
    try:
        if not await teacher.teach_bundled(intents):
            await _in_background(stack, teacher.teach(intents))
    except TextTooLong as error:
        raise SettingsError(f"semantic.intents: an example is too long: {error}") from error
    return intents


async def _in_background(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)

    async def stop() -> None:
        while not task.done():  # a library may lose one cancellation on its way
            task.cancel()
            await asyncio.wait([task], timeout=CANCEL_AGAIN_S)

    stack.push_async_callback(stop)


def _refresher(metrics: Metrics, stack: AsyncExitStack) -> Refresher:
    refresher = Refresher(metrics.count_refresh)
    stack.push_async_callback(refresher.close)
    return refresher


async def _keep_up(cache: SemanticCache) -> None:
    await asyncio.gather(_sweep(cache), cache.reembed())


async def _sweep(cache: SemanticCache) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        await cache.sweep()


async def _open_upstreams(
    settings: Settings, metrics: Metrics, traces: Traces, stack: AsyncExitStack
) -> UpstreamPool:
    def answered(upstream: str, status: str) -> None:
        metrics.count_upstream(upstream, status)
        traces.answered(upstream, status)

    pool = UpstreamPool(answered)
    stack.push_async_callback(pool.close)
    await pool.use(settings)
    return pool
