"""Settings: defaults, then ``strata.toml``, then ``STRATA_*`` variables, then the command line.

The only reader of the environment. A `Settings` never changes after it is built. Every key stands
once, as a field below; its type carries the allowed values.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from gateway.backends.tool_format import ToolParserName
from gateway.bundled.location import default_models_dir
from gateway.intent_settings import IntentSettings, check_intents
from gateway.proxies import proxy_of
from gateway.settings_tree import PREFIX, SettingsError, allowed, build, is_table_list, keys
from gateway.upstream_settings import UpstreamSettings
from semantic_layer import Private, read_keys

NOT_SETTINGS = frozenset({"STRATA_CONFIG", "STRATA_PEERS", "STRATA_BENCH"})
NOT_SETTINGS_PREFIX = "STRATA_TEST_"
NO_PROXY = "none"
UPSTREAM = "upstream:"
OWN_HEADERS = frozenset(
    {"authorization", "x-api-key", "host", "connection", "content-length", "content-type"}
    | {"content-encoding", "transfer-encoding", "accept", "accept-encoding", "cookie", "te"}
    | {"expect", "upgrade", "trailer", "keep-alive", "x-request-id", "x-strata-admin-key"}
)

__all__ = ["Settings", "SettingsError", "UpstreamSettings", "allowed", "describe"]
__all__ += ["load_settings", "variables"]

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
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
    ``tool_parser`` is how the model writes tool calls; ``auto`` asks its chat template.
    ``kv_events`` is where routers hear of blocks: ``off``, a socket's path, or ``on`` for
    ``kv-events.sock`` in the data folder. ``public_prefixes`` is a file of chat requests, one a
    line, whose prompts all tenants share.
    """

    model: Name = "bundled"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Name = "auto"
    weights: Literal["auto", "int8"] = "auto"
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

    ``verifier`` gives the probability of the same answer: ``bundled``, ``none`` (rules and
    similarity alone), ``judge:MODEL`` (a yes or no by a model served here), or a cross-encoder's
    name or folder.

    To learn, ``shadow_share`` of semantic hits are answered afresh in the background and
    ``gray_share`` of near-misses compared with the answer that was generated, each at most
    ``max_evidence_per_minute`` times; ``evidence_judge`` is a model that is asked whether two
    answers say the same where their words do not tell, or ``none``.
    """

    enabled: bool = True
    wrong_hit_budget: Share = 0.01
    shadow_share: Share = 0.0
    gray_share: Share = 1.0
    max_evidence_per_minute: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 30
    evidence_judge: Name = "none"
    top_k: Annotated[int, msgspec.Meta(ge=5, le=100)] = 8
    verifier: Name = "bundled"
    verifier_timeout_s: Seconds = 1.0
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
class Settings:
    """The effective settings of one gateway."""

    host: Name = "127.0.0.1"
    port: Port = 8000
    workers: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    data_dir: Path = Path(".strata")
    models_dir: Path | None = None
    admin_key: str | None = None
    api_keys_file: Path | None = None
    max_body_bytes: Count = 16 << 20
    redis: RedisSettings = field(default_factory=RedisSettings)
    qdrant: QdrantSettings = field(default_factory=QdrantSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    semantic: SemanticSettings = field(default_factory=SemanticSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    requests: RequestsSettings = field(default_factory=RequestsSettings)
    layout: LayoutSettings = field(default_factory=LayoutSettings)
    log: LogSettings = field(default_factory=LogSettings)
    upstreams: list[UpstreamSettings] = field(default_factory=list)
    upstream_keys: Mapping[str, str] = field(
        default_factory=dict, repr=False, metadata={"derived": True}
    )


def load_settings(
    config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, Any] | None = None
) -> Settings:
    """Build the settings from a TOML file, the environment and top-level overrides.

    Args:
        config: the TOML file; None takes ``STRATA_CONFIG``, else ``strata.toml`` if it is there.
        environ: the process environment.
        overrides: top-level keys from the command line; None values are ignored.

    Raises:
        SettingsError: a file that cannot be read, an unknown key, or a value out of range.
    """
    tree = _read_toml(_config_path(config, environ))
    _merge_environment(tree, environ)
    tree.update({key: value for key, value in (overrides or {}).items() if value is not None})
    settings: Settings = build(Settings, tree, where="")
    _check_names(settings)
    check_intents(settings.semantic.intents)
    _check_encryption(settings.cache)
    return dataclasses.replace(
        settings,
        models_dir=settings.models_dir or default_models_dir(environ),
        upstreams=[_completed(upstream, environ) for upstream in settings.upstreams],
        upstream_keys=_upstream_keys(settings.upstreams, environ),
    )


def describe(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values, secrets masked."""
    tree = msgspec.to_builtins(settings, enc_hook=str)
    del tree["upstream_keys"]
    secrets = ((tree, "admin_key"), (tree["qdrant"], "api_key"), (tree["cache"], "encryption_key"))
    for place, key in secrets:
        if place[key]:
            place[key] = "****"
    tree["redis"]["url"] = _masked_url(tree["redis"]["url"])
    for upstream in tree["upstreams"]:
        upstream["headers"] = dict.fromkeys(upstream["headers"], "****")
        upstream["proxy"] = upstream["proxy"] and _masked_url(upstream["proxy"])
    return dict(tree)


def variables() -> dict[str, tuple[str, str]]:
    """Return every settings variable with its default and its allowed values, in words."""
    listed: dict[str, tuple[str, str]] = {}
    for key, kind, default in keys(Settings):
        if dataclasses.is_dataclass(kind):
            for name, inner, value in keys(kind):
                if not is_table_list(inner):
                    listed[f"{PREFIX}{key.upper()}__{name.upper()}"] = (str(value), allowed(inner))
        elif not is_table_list(kind):
            listed[f"{PREFIX}{key.upper()}"] = (str(default), allowed(kind))
    return listed


def _config_path(config: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = config or (Path(environ["STRATA_CONFIG"]) if environ.get("STRATA_CONFIG") else None)
    if named is not None:
        return named
    usual = Path("strata.toml")
    return usual if usual.exists() else None


def _read_toml(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error


def _merge_environment(tree: dict[str, Any], environ: Mapping[str, str]) -> None:
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        if name.startswith(NOT_SETTINGS_PREFIX):
            continue
        section, _, key = name.removeprefix(PREFIX).lower().partition("__")
        if key:
            inner = tree.setdefault(section, {})
            if not isinstance(inner, dict):
                raise SettingsError(f"{name}: {section} is one value, not a section")
            inner[key] = value
        else:
            tree[section] = value


def _check_names(settings: Settings) -> None:
    names = [upstream.name for upstream in settings.upstreams]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise SettingsError(f"upstreams[{at}].name: {name!r} is taken by another upstream")
    embedder = settings.embedder.upstream
    if embedder is not None and (embedder[0] not in names or not embedder[1]):
        raise SettingsError(
            f"embedder.model (STRATA_EMBEDDER__MODEL): {settings.embedder.model!r} is not "
            f"{UPSTREAM}NAME/MODEL of an upstream: {', '.join(names) or 'there is none'}"
        )


def _check_encryption(cache: CacheSettings) -> None:
    where = "cache.encryption_key (STRATA_CACHE__ENCRYPTION_KEY)"
    if cache.encryption_key is None:
        if cache.private == "encrypt":
            raise SettingsError(f'{where}: cache.private = "encrypt" needs one')
        return
    try:
        read_keys(cache.encryption_key)
    except ValueError as error:
        raise SettingsError(f"{where}: {error}; make one by: openssl rand -base64 32") from None


def _completed(upstream: UpstreamSettings, environ: Mapping[str, str]) -> UpstreamSettings:
    """Return the upstream with what the environment says of its proxy and headers."""
    for name in upstream.relay_headers:
        if name.lower() in OWN_HEADERS:
            raise SettingsError(f"upstream {upstream.name}: relay_headers: {name} is not relayed")
    headers = {}
    for name, value in upstream.headers.items():
        headers[name] = environ.get(value[1:], "") if value.startswith("$") else value
        if not headers[name]:
            raise SettingsError(f"upstream {upstream.name}: headers.{name}: {value} is not set")
    proxy = upstream.proxy or proxy_of(upstream.base_url, environ)
    if proxy == NO_PROXY:
        proxy = None
    elif proxy is not None and not proxy.startswith(("http://", "https://")):
        raise SettingsError(f"upstream {upstream.name}: proxy {_masked_url(proxy)}: not http(s)://")
    return dataclasses.replace(upstream, headers=headers, proxy=proxy)


def _upstream_keys(
    upstreams: list[UpstreamSettings], environ: Mapping[str, str]
) -> Mapping[str, str]:
    keys: dict[str, str] = {}
    for upstream in upstreams:
        if upstream.api_key_env is None:
            continue
        if not environ.get(upstream.api_key_env):
            raise SettingsError(
                f"upstream {upstream.name}: the variable {upstream.api_key_env} is not set"
            )
        keys[upstream.name] = environ[upstream.api_key_env]
    return keys


def _masked_url(url: str) -> str:
    scheme, sep, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    return f"{scheme}{sep}****@{host}" if at and user else url
