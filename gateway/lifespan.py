"""Opens and closes the parts of one gateway: the only place that knows how they fit together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path

from gateway.auth import KeyRing
from gateway.backends.base import Backend, ModelInfo
from gateway.backends.embeddings import LocalEmbeddings
from gateway.backends.local import LocalBackend
from gateway.backends.routing import Backends
from gateway.backends.upstream import UpstreamEmbedder
from gateway.bundled import EMBEDDER, BundledModel
from gateway.embedding_model import EmbeddingModel
from gateway.embeddings import Embeddings
from gateway.engine_config import engine_config, local_model_folder, local_model_id
from gateway.flight import FlightGroup
from gateway.herd import Herd
from gateway.hub import served_name
from gateway.kept_responses import KeptResponses
from gateway.ledger import Ledger
from gateway.metrics import Metrics
from gateway.parts import Parts
from gateway.pipeline import Pipeline
from gateway.public_prefixes import warm_public
from gateway.quotas import Quotas
from gateway.record import RequestRecord
from gateway.settings import Settings
from gateway.stats import TrafficStats
from gateway.upstreams import Upstreams, build_upstreams, relayed_headers
from gateway.write_back import WriteBack
from prefix_layer import EngineClient
from semantic_layer import (
    CachePolicy,
    Embedder,
    Records,
    ResponseStore,
    Scorer,
    SemanticCache,
    SharedIndex,
    Thresholds,
    Valkey,
    VectorIndex,
    collection_name,
    open_counters,
    open_leases,
    open_point_feed,
    open_records,
    open_response_store,
    open_vector_index,
)

SWEEP_EVERY_S = 60.0
DRAIN_S = 1.0
LOAD_TIMEOUT_S = 1800.0
OWN_STORES = ("embedded", "memory")
OWN_INDEXES = ("embedded", "memory")
PROMPT_MEMORY = "recent-prompts"


@contextlib.asynccontextmanager
async def open_parts(settings: Settings) -> AsyncIterator[Parts]:
    """Open everything the settings ask for; on leaving, close it in the opposite order.

    Raises:
        StrataError, SemanticLayerError, PrefixLayerError: a part that the settings ask for cannot
            be opened; the message is one clear line.
    """
    async with AsyncExitStack() as stack:
        metrics, stats, key_ring = Metrics(), TrafficStats(), KeyRing(settings.api_keys_file)
        engine = await _start_engine(stack, settings)
        store_url = await _store_url(settings, stack)
        store = _open_store(settings, store_url)
        quotas = _open_quotas(settings, store_url, metrics)
        stack.push_async_callback(quotas.close)
        records = _open_records(settings, store_url)
        stack.push_async_callback(records.close)
        upstreams = await _open_upstreams(settings, metrics, stack)
        embedding_model = _embedding_model(settings)
        if embedding_model is not None:
            stack.push_async_callback(embedding_model.close)
        embedder = await _open_embedder(settings, embedding_model, upstreams)
        index = _open_index(settings, embedder)
        cache = SemanticCache(
            store=store,
            index=index,
            embedder=embedder,
            policy=_policy(settings),
            scorer=await Scorer.matching(embedder) if embedder else None,
            thresholds=Thresholds.within(settings.semantic.wrong_hit_budget),
            observe=metrics.observe_lookup,
            on_failure=metrics.count_store_failure,
        )
        stack.push_async_callback(cache.close)
        if isinstance(index, SharedIndex):
            await _in_background(stack, index.follow())
        served_here = _local_backends(settings, engine, embedding_model)
        backends = Backends(
            [*served_here, *upstreams.values()],
            {each.name: each.fallbacks for each in settings.upstreams},
            metrics.count_fallback,
        )
        stack.push_async_callback(backends.close)
        metrics.know_models(lambda name: backends.find(name) is not None)
        ledger = Ledger(backends.prices_of, metrics.count_money)
        write_back = WriteBack(settings.cache.write_queue, metrics.count_dropped)
        flights = FlightGroup()
        await _in_background(stack, _sweep(cache))
        await _in_background(stack, write_back.run())
        stack.push_async_callback(write_back.drain, DRAIN_S)
        if engine is not None:
            await engine.wait_ready(LOAD_TIMEOUT_S)
        local = next((b for b in served_here if isinstance(b, LocalBackend)), None)
        if local is not None and settings.local.public_prefixes is not None:
            await warm_public(local, settings.local.public_prefixes)

        def record(request: RequestRecord) -> None:
            metrics.record(request)
            stats.record(request)
            ledger.record(request)

        pipeline = Pipeline(
            cache=cache,
            backends=backends,
            flights=flights,
            write_back=write_back,
            quotas=quotas,
            on_record=record,
            herd=_open_herd(settings, write_back, stack),
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
            ledger=ledger,
            upstreams=upstreams,
            relayed_headers=relayed_headers(settings.upstreams),
            quotas=quotas,
            local=local,
            responses=KeptResponses(records, settings.cache.responses_ttl_s),
        )


async def _start_engine(stack: AsyncExitStack, settings: Settings) -> EngineClient | None:
    if settings.local.model == "none":
        return None
    folder = await asyncio.to_thread(local_model_folder, settings)
    engine = EngineClient(engine_config(settings, folder))
    stack.push_async_callback(engine.close)
    await engine.start()
    return engine


async def _store_url(settings: Settings, stack: AsyncExitStack) -> str:
    """Return where Redis is; the embedded one is started."""
    if settings.redis.url != "embedded":
        return settings.redis.url
    folder = settings.data_dir / "valkey"
    valkey = await Valkey.start(folder, max_memory_bytes=settings.cache.max_memory_bytes)
    stack.push_async_callback(valkey.stop)
    return valkey.url


def _open_store(settings: Settings, url: str) -> ResponseStore:
    return open_response_store(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
        max_connections=settings.redis.max_connections,
    )


def _open_quotas(settings: Settings, url: str, metrics: Metrics) -> Quotas:
    counters = open_counters(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
    )
    return Quotas(counters, on_failure=lambda: metrics.count_store_failure("counters"))


def _open_records(settings: Settings, url: str) -> Records:
    return open_records(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
    )


async def _open_upstreams(settings: Settings, metrics: Metrics, stack: AsyncExitStack) -> Upstreams:
    upstreams = build_upstreams(settings, metrics)
    for upstream in upstreams.values():
        stack.push_async_callback(upstream.close)
    await asyncio.gather(*(upstream.refresh() for upstream in upstreams.values()))
    for each in settings.upstreams:
        upstream = upstreams[each.name]
        await _in_background(stack, upstream.watch(each.health_every_s))
    return upstreams


def _embedding_model(settings: Settings) -> EmbeddingModel | None:
    """Return this machine's embedding model; None when an upstream's is used."""
    named = settings.embedder.model
    if settings.embedder.upstream is not None:
        return None
    name = _bundled(settings, EMBEDDER) if named == "bundled" else named
    return EmbeddingModel(name, settings.embedder.device)


async def _open_embedder(
    settings: Settings, model: EmbeddingModel | None, upstreams: Upstreams
) -> Embedder | None:
    if not settings.semantic.enabled:
        return None
    if model is not None:
        return await model.open()
    named = settings.embedder.upstream
    assert named is not None, "one of them is set"
    upstream = upstreams[named[0]]
    info = upstream.match(named[1]) or ModelInfo(named[1], upstream.name, "")
    return await UpstreamEmbedder.open(
        upstream, info, prompt=settings.embedder.prompt, window=settings.embedder.window_tokens
    )


def _open_index(settings: Settings, embedder: Embedder | None) -> VectorIndex:
    if embedder is None:
        return open_vector_index("memory", folder=settings.data_dir, collection="none", dim=1)
    folder, name = settings.data_dir / "qdrant", collection_name(embedder.fingerprint, embedder.dim)
    own = open_vector_index(
        settings.qdrant.url,
        folder=folder,
        collection=name,
        dim=embedder.dim,
        api_key=settings.qdrant.api_key,
    )
    if not _shares_redis(settings) or settings.qdrant.url not in OWN_INDEXES:
        return own
    feed = open_point_feed(settings.redis.url, name, connect_timeout_s=settings.redis.timeout_s)
    keeps = settings.qdrant.url == "embedded"
    return SharedIndex(own, feed, position_file=folder / f"{name}.feed" if keeps else None)


def _open_herd(settings: Settings, write_back: WriteBack, stack: AsyncExitStack) -> Herd | None:
    """Return what keeps several gateways from generating the same; None for one by itself."""
    if not _shares_redis(settings):
        return None
    timeout_s = settings.redis.timeout_s
    leases = open_leases(
        settings.redis.url, connect_timeout_s=timeout_s, command_timeout_s=timeout_s
    )
    stack.push_async_callback(leases.close)
    return Herd(leases, write_back.after)


def _shares_redis(settings: Settings) -> bool:
    """Say whether other gateways may be at work on the same store."""
    return settings.redis.url not in OWN_STORES


def _policy(settings: Settings) -> CachePolicy:
    return CachePolicy(
        semantic=settings.semantic.enabled,
        ttl_s=settings.cache.ttl_s,
        max_temperature=settings.cache.max_temperature,
        top_k=settings.semantic.top_k,
        store_deadline_s=settings.redis.timeout_s,
        index_deadline_s=settings.qdrant.timeout_s,
        embed_deadline_s=settings.embedder.timeout_s,
    )


def _local_backends(
    settings: Settings, engine: EngineClient | None, embedder: EmbeddingModel | None
) -> list[Backend]:
    backends: list[Backend] = []
    if engine is not None:
        tool_parser = settings.local.tool_parser
        backends.append(
            LocalBackend(
                local_model_id(settings),
                engine.config.model_path,
                engine,
                default_max_tokens=settings.local.default_max_tokens,
                memory_path=settings.data_dir / PROMPT_MEMORY,
                tool_parser=None if tool_parser == "auto" else tool_parser,
            )
        )
    if embedder is not None:
        backends.append(_local_embeddings(settings, embedder))
    return backends


def _local_embeddings(settings: Settings, embedder: EmbeddingModel) -> Backend:
    name = settings.embedder.model
    model_id = EMBEDDER.model_id if name == "bundled" else served_name(name)
    return LocalEmbeddings(ModelInfo(model_id, "strata", embedder.fingerprint), embedder.open)


def _bundled(settings: Settings, model: BundledModel) -> Path:
    assert settings.models_dir is not None, "load_settings fills it in"
    return settings.models_dir / model.model_id


async def _in_background(stack: AsyncExitStack, work: Coroutine[None, None, None]) -> None:
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        await asyncio.wait([task])

    stack.push_async_callback(stop)


async def _sweep(cache: SemanticCache) -> None:
    while True:
        await asyncio.sleep(SWEEP_EVERY_S)
        await cache.sweep()
