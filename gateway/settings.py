"""Settings: defaults, then ``strata.toml``, then ``STRATA_*`` variables, then the command line.

The only reader of the environment. A `Settings` never changes after it is built. Every key stands
once, as a field below; its type carries the allowed values.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from gateway.bundled.location import default_models_dir

PREFIX = "STRATA_"
NOT_SETTINGS = frozenset({"STRATA_CONFIG", "STRATA_PEERS", "STRATA_BENCH"})
NOT_SETTINGS_PREFIX = "STRATA_TEST_"

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
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
HttpUrl = Annotated[str, msgspec.Meta(pattern=r"^https?://.+$", description="http://… | https://…")]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class SettingsError(Exception):
    """A key or value that stops the start; the message names it and what is allowed."""


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
    """Embedding model of the semantic layer: ``bundled``, or a sentence-transformers model."""

    model: Name = "bundled"
    device: Name = "cpu"
    timeout_s: Seconds = 1.0


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """Local model and its KV prefix cache; ``model = "none"`` runs without one.

    KV that leaves the pool is kept in ``host_kv_bytes`` of memory and ``disk_kv_bytes`` of
    ``kv_dir``, which several engines may share; None is a folder in the data folder.
    """

    model: Name = "bundled"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Name = "auto"
    block_size: Annotated[int, msgspec.Meta(ge=1, le=512)] = 16
    kv_tokens: Count = 32768
    eviction: Literal["lru", "lfu", "fifo", "arc", "s3fifo", "adaptive"] = "lru"
    prefix_caching: Literal["on", "off"] = "on"
    host_kv_bytes: Bytes = 0
    disk_kv_bytes: Bytes = 0
    kv_dir: Path | None = None
    kv_codec: Literal["none", "int8"] = "none"
    max_sequences: Count = 32
    max_batch_tokens: Count = 512
    default_max_tokens: Count = 1024


@dataclass(frozen=True, slots=True)
class SemanticSettings:
    """Semantic layer; ``wrong_hit_budget`` bounds the wrong share among served hits."""

    enabled: bool = True
    wrong_hit_budget: Share = 0.01
    top_k: Annotated[int, msgspec.Meta(ge=5, le=100)] = 8


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Both response layers; requests above ``max_temperature`` bypass them.

    Stored answers are streamed at ``replay_tokens_per_s``, 0 is at once.
    """

    ttl_s: Seconds = 86400.0
    max_temperature: Temperature = 1.0
    write_queue: Count = 1024
    max_memory_bytes: Bytes = 1 << 30
    replay_tokens_per_s: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0


@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """An OpenAI-compatible engine; ``api_key_env`` names the variable that holds its key."""

    name: Name
    base_url: HttpUrl
    models: list[str]
    api_key_env: str | None = None
    replicas: list[HttpUrl] = field(default_factory=list)
    connect_timeout_s: Seconds = 5.0
    timeout_s: Seconds = 120.0


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
    log: LogSettings = field(default_factory=LogSettings)
    upstreams: list[UpstreamSettings] = field(default_factory=list)
    upstream_keys: Mapping[str, str] = field(default_factory=dict, repr=False)


DERIVED = frozenset({"upstream_keys"})


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
    settings: Settings = _build(Settings, tree, where="")
    return dataclasses.replace(
        settings,
        models_dir=settings.models_dir or default_models_dir(environ),
        upstream_keys=_upstream_keys(settings.upstreams, environ),
    )


def describe(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain values, secrets masked."""
    tree = msgspec.to_builtins(settings, enc_hook=str)
    del tree["upstream_keys"]
    for place, key in ((tree, "admin_key"), (tree["qdrant"], "api_key")):
        if place[key]:
            place[key] = "****"
    tree["redis"]["url"] = _masked_url(tree["redis"]["url"])
    return dict(tree)


def variables() -> dict[str, tuple[str, str]]:
    """Return every settings variable with its default and its allowed values, in words."""
    listed: dict[str, tuple[str, str]] = {}
    for key, kind, default in _keys(Settings):
        if dataclasses.is_dataclass(kind):
            for name, inner, value in _keys(kind):
                listed[f"{PREFIX}{key.upper()}__{name.upper()}"] = (str(value), allowed(inner))
        elif key != "upstreams":
            listed[f"{PREFIX}{key.upper()}"] = (str(default), allowed(kind))
    return listed


def allowed(kind: Any) -> str:
    """Describe the values a settings type takes."""
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if get_origin(kind) is Annotated:
        base, meta = get_args(kind)
        if meta.description:
            return str(meta.description)
        limits = [
            f"{sign} {bound:g}"
            for sign, bound in (("≥", meta.ge), (">", meta.gt), ("≤", meta.le))
            if bound is not None
        ]
        return " ".join([allowed(base), ", ".join(limits)]).strip()
    if kind is bool:
        return "true | false"
    names = {int: "whole number", float: "number", str: "text", Path: "path"}
    parts = [part for part in get_args(kind) if part is not type(None)]
    return names.get(kind) or (allowed(parts[0]) if parts else str(kind))


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


def _build(kind: Any, tree: Any, where: str) -> Any:
    if not isinstance(tree, dict):
        raise SettingsError(f"{_named(where)}: expected a section with {_known(kind, where)}")
    known = {key: inner for key, inner, _ in _keys(kind)}
    for key in tree:
        if key not in known:
            unknown = _named(_dotted(where, key))
            raise SettingsError(f"unknown setting {unknown}; known: {_known(kind, where)}")
    values = {key: _value(known[key], tree[key], _dotted(where, key)) for key in tree}
    missing = [
        _dotted(where, spec.name)
        for spec in dataclasses.fields(kind)
        if spec.default is dataclasses.MISSING
        and spec.default_factory is dataclasses.MISSING
        and spec.name not in values
    ]
    if missing:
        raise SettingsError(f"missing setting {', '.join(missing)}")
    return kind(**values)


def _value(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _build(kind, value, where)
    if kind == list[UpstreamSettings]:
        if not isinstance(value, list):
            raise SettingsError(f"{where}: expected [[upstreams]] tables in strata.toml")
        return [_build(UpstreamSettings, row, f"{where}[{i}]") for i, row in enumerate(value)]
    if value == "" and type(None) in get_args(kind):
        return None
    if kind is bool and isinstance(value, str):
        value = {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(value, value)
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_decode_path)
    except (msgspec.ValidationError, NotImplementedError):
        raise SettingsError(
            f"{_named(where)}: {value!r} is not allowed; use {allowed(kind)}"
        ) from None


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, (str, Path)):
        return Path(value).expanduser()
    raise NotImplementedError


def _keys(kind: Any) -> list[tuple[str, Any, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        (spec.name, hints[spec.name], spec.default)
        for spec in dataclasses.fields(kind)
        if spec.name not in DERIVED
    ]


def _known(kind: Any, where: str) -> str:
    return ", ".join(_dotted(where, key) for key, _, _ in _keys(kind))


def _named(where: str) -> str:
    return f"{where} ({PREFIX}{where.upper().replace('.', '__')})"


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


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
