"""The sections of the settings: every key once, as a field; its type carries the allowed values."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gateway.backends.tool_format import ToolParserName
from gateway.intent_settings import IntentSettings
from semantic_layer import Private

UPSTREAM = "upstream:"

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
DrainSeconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
SecondsOrOff = Annotated[
    float, msgspec.Meta(ge=0, le=1e9, description="seconds, or 0 for no limit")
]
CountOrOff = Annotated[int, msgspec.Meta(ge=0, description="whole number, or 0 for no limit")]
Bytes = Annotated[int, msgspec.Meta(ge=0)]
Temperature = Annotated[float, msgspec.Meta(ge=0, le=2)]
StoreUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(embedded|memory|rediss?://.+|unix://.+)$",
        description="embedded | memory | redis://… | rediss://… | unix://…",
    ),
]
IndexUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(embedded|memory|https?://.+)$",
        description="embedded | memory | http://… | https://…",
    ),
]
Name = Annotated[str, msgspec.Meta(min_length=1)]
TraceHeaders = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9-]+=[ -~]+(,[A-Za-z0-9-]+=[ -~]+)*$", description="NAME=VALUE,…"
    ),
]
TraceUrl = Annotated[
    str, msgspec.Meta(pattern=r"^https?://.+$", description="http://… | https://…")
]


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Response store: ``embedded`` (own Valkey process), ``memory``, or a server's URL."""

    url: StoreUrl = "embedded"
    timeout_s: Seconds = 0.25
    max_connections: Count = 32


@dataclass(frozen=True, slots=True)
class QdrantSettings:
    """Vector index: ``embedded`` (engine in this process), ``memory``, or a server's URL."""

    url: IndexUrl = "embedded"
    api_key: str | None = None
    timeout_s: Seconds = 0.25


@dataclass(frozen=True, slots=True)
class EmbedderSettings:
    """Embedding model of the semantic layer.

    ``bundled``, a sentence-transformers model, or ``upstream:NAME/MODEL``. ``prompt`` and
    ``window_tokens`` are the upstream's: what it wants before each text, and how much it reads.
    """

    model: Name = "bundled"
    device: Name = "cpu"
    timeout_s: Seconds = 1.0
    prompt: str = ""
    window_tokens: Count = 512

    @property
    def upstream(self) -> tuple[str, str] | None:
        """The upstream and its model, when the model is one's."""
        if not self.model.startswith(UPSTREAM):
            return None
        name, _, model = self.model.removeprefix(UPSTREAM).partition("/")
        return name, model


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Local model and its KV prefix cache; ``model = "none"`` runs without one.

    KV that leaves the pool is kept in ``host_kv_bytes`` of memory and ``disk_kv_bytes`` of
    ``kv_dir``, which several engines may share; None is a folder in the data folder.
    ``precision`` is that of float32 products on a CPU: ``high`` lets those of 4- and 8-bit weights
    take 16 bits of an activation; ``auto`` does so where ``weights`` are int8.
    ``tool_parser`` is how the model writes tool calls; ``auto`` asks its chat template.
    ``kv_events`` is where routers hear of blocks: ``off``, a socket's path, or ``on`` for
    ``kv-events.sock`` in the data folder. ``public_prefixes`` is a file of chat requests, one a
    line, whose prompts all tenants share.
    """

    model: Name = "bundled"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Name = "auto"
    weights: Literal["auto", "int8"] = "auto"
    precision: Literal["auto", "high", "highest"] = "auto"
    block_size: Annotated[int, msgspec.Meta(ge=1, le=512)] = 16
    kv_tokens: Count = 32768
    eviction: Literal["lru", "lfu", "fifo", "arc", "s3fifo", "adaptive"] = "adaptive"
    kv_ttl_s: SecondsOrOff = 0.0
    prefix_caching: Literal["on", "off"] = "on"
    host_kv_bytes: Bytes = 0
    disk_kv_bytes: Bytes = 0
    kv_dir: Path | None = None
    kv_codec: Literal["none", "int8"] = "none"
    max_sequences: Count = 32
    max_batch_tokens: Count = 512
    default_max_tokens: Count = 1024
    tool_parser: Literal["auto", ToolParserName] = "auto"
    kv_events: Name = "off"
    public_prefixes: Path | None = None


@dataclass(frozen=True, slots=True)
class SemanticSettings:
    """Semantic layer; ``wrong_hit_budget`` bounds the wrong share among served hits.

    Until labels prove a threshold within it, an intent begins with the one that was ``fitted`` on
    written questions; with ``start = "proven"`` only texts in which rules find no difference are
    served until then.

    ``verifier`` gives the probability of the same answer: ``bundled``, ``none`` (rules and
    similarity alone), ``judge:MODEL`` (a yes or no by a model served here), or a cross-encoder's
    name or folder. ``rewriter`` is a model served here that puts a chat's last message so that it
    needs nothing said before, or ``none``; slower than ``rewriter_timeout_s`` it is done without.

    To learn, ``shadow_share`` of semantic hits are answered afresh in the background and
    ``gray_share`` of near-misses compared with the answer that was generated, each at most
    ``max_evidence_per_minute`` times; ``evidence_judge`` is a model that is asked whether two
    answers say the same where their words do not tell, or ``none``.
    """

    enabled: bool = True
    wrong_hit_budget: Share = 0.01
    start: Literal["fitted", "proven"] = "fitted"
    shadow_share: Share = 0.0
    gray_share: Share = 1.0
    max_evidence_per_minute: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 30
    evidence_judge: Name = "none"
    top_k: Annotated[int, msgspec.Meta(ge=5, le=100)] = 8
    verifier: Name = "bundled"
    verifier_timeout_s: Seconds = 1.0
    rewriter: Name = "none"
    rewriter_timeout_s: Seconds = 2.0
    intents: list[IntentSettings] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Both response layers; requests above ``max_temperature`` bypass them.

    An answer past its TTL still serves exact repeats for ``stale_while_revalidate_s``, while a new
    one is made. Beyond ``max_entries`` the least used go. What is kept in Redis is encrypted where
    there is an ``encryption_key`` (32 bytes in base64 or hex; after a comma older ones, which are
    read only). ``private`` is what becomes of requests with secrets or personal data.

    Stored answers are streamed at ``replay_tokens_per_s``, 0 is at once; ``responses_ttl_s`` is how
    long a response can be continued by its id.
    """

    ttl_s: Seconds = 86400.0
    stale_while_revalidate_s: SecondsOrOff = 0.0
    max_entries: CountOrOff = 0
    private: Private = "skip"
    encryption_key: str | None = None
    responses_ttl_s: Seconds = 2592000.0
    max_temperature: Temperature = 1.0
    write_queue: Count = 1024
    max_memory_bytes: Bytes = 1 << 30
    replay_tokens_per_s: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0


@dataclass(frozen=True, slots=True)
class RequestsSettings:
    """Recorded requests, for the admin API: how many are ``kept``, and whether with their texts."""

    kept: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 10_000
    texts: Literal["on", "off"] = "on"


@dataclass(frozen=True, slots=True)
class DashboardSettings:
    """Web pages; ``mask_prompts`` shows only how long prompts and answers are."""

    mask_prompts: bool = False


@dataclass(frozen=True, slots=True)
class LayoutSettings:
    """How requests are written before caches and models see them.

    ``tools`` puts them in order of their names, ``sorted`` their arguments too; ``documents`` are
    those of ``strata.documents``.
    """

    tools: Literal["as_sent", "by_name", "sorted"] = "as_sent"
    documents: Literal["as_sent", "by_id"] = "as_sent"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Structured logs; prompts, answers and keys are never part of them."""

    format: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """OpenTelemetry traces of a share of the requests; off without an ``endpoint``.

    The endpoint takes OTLP over HTTP, as ``http://localhost:4318/v1/traces``. A request whose
    ``traceparent`` is sampled, or isn't, is followed by that.
    """

    endpoint: TraceUrl | None = None
    headers: TraceHeaders | None = None
    sample_share: Share = 1.0
    service_name: Name = "strata"
    every_s: Annotated[float, msgspec.Meta(ge=0.05, le=60)] = 2.0
