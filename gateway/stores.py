"""Opens what keeps things: Redis, the vector index and all that is counted or recorded there."""

from contextlib import AsyncExitStack

from gateway.herd import Herd
from gateway.metrics import Metrics
from gateway.quotas import Quotas
from gateway.settings import Settings
from gateway.write_back import WriteBack
from semantic_layer import (
    Embedder,
    Journal,
    Records,
    ResponseStore,
    SealedJournal,
    SealedRecords,
    Sealer,
    SharedIndex,
    Valkey,
    VectorIndex,
    collection_name,
    open_counters,
    open_journal,
    open_leases,
    open_point_feed,
    open_records,
    open_response_store,
    open_vector_index,
    read_keys,
)

OWN_STORES = ("embedded", "memory")
JOURNAL_TIMEOUT_S = 2.0  # nobody's answer waits for it
OWN_INDEXES = ("embedded", "memory")


async def open_redis(settings: Settings, stack: AsyncExitStack) -> str:
    """Return where Redis is; the embedded one is started."""
    if settings.redis.url != "embedded":
        return settings.redis.url
    folder = settings.data_dir / "valkey"
    valkey = await Valkey.start(folder, max_memory_bytes=settings.cache.max_memory_bytes)
    stack.push_async_callback(valkey.stop)
    return valkey.url


def open_store(settings: Settings, url: str) -> ResponseStore:
    """Open the store of cached answers."""
    return open_response_store(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
        max_connections=settings.redis.max_connections,
        sealer=sealer_of(settings),
    )


def open_quotas(settings: Settings, url: str, metrics: Metrics) -> Quotas:
    """Open the counters that limits and budgets rest on."""
    counters = open_counters(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
    )
    return Quotas(counters, on_failure=lambda: metrics.count_store_failure("counters"))


def open_kept_records(settings: Settings, url: str) -> Records:
    """Open the store of what clients asked to be kept."""
    records = open_records(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=settings.redis.timeout_s,
    )
    sealer = sealer_of(settings)
    return records if sealer is None else SealedRecords(records, sealer)


def open_evidence_journal(settings: Settings, url: str) -> Journal:
    """Open the journals of what is learnt and set while gateways run."""
    journal = open_journal(
        url,
        connect_timeout_s=settings.redis.timeout_s,
        command_timeout_s=max(settings.redis.timeout_s, JOURNAL_TIMEOUT_S),
    )
    sealer = sealer_of(settings)
    return journal if sealer is None else SealedJournal(journal, sealer)


def sealer_of(settings: Settings) -> Sealer | None:
    """Return what encrypts all that is kept in Redis; None without a key."""
    key = settings.cache.encryption_key
    return None if key is None else Sealer(read_keys(key))


def open_index(settings: Settings, embedder: Embedder | None) -> VectorIndex:
    """Open the vector index; one that shares its Redis hears of the points of other gateways."""
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
    if not shares_redis(settings) or settings.qdrant.url not in OWN_INDEXES:
        return own
    feed = open_point_feed(settings.redis.url, name, connect_timeout_s=settings.redis.timeout_s)
    keeps = settings.qdrant.url == "embedded"
    return SharedIndex(own, feed, position_file=folder / f"{name}.feed" if keeps else None)


def open_herd(settings: Settings, write_back: WriteBack, stack: AsyncExitStack) -> Herd | None:
    """Return what keeps several gateways from generating the same; None for one by itself."""
    if not shares_redis(settings):
        return None
    timeout_s = settings.redis.timeout_s
    leases = open_leases(
        settings.redis.url, connect_timeout_s=timeout_s, command_timeout_s=timeout_s
    )
    stack.push_async_callback(leases.close)
    return Herd(leases, write_back.after)


def shares_redis(settings: Settings) -> bool:
    """Say whether other gateways may be at work on the same store."""
    return settings.redis.url not in OWN_STORES
