"""Settings: defaults, then ``strata.toml``, then ``STRATA_*`` variables, then the command line.

The only reader of the environment. A `Settings` never changes after it is built. Every key stands
once, as a field below; its type carries the allowed values.
"""

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec

from gateway.bundled.location import default_models_dir
from gateway.intent_settings import check_intents
from gateway.proxies import proxy_of
from gateway.setting_sections import (
    UPSTREAM,
    CacheSettings,
    Count,
    DashboardSettings,
    DrainSeconds,
    EmbedderSettings,
    LayoutSettings,
    LocalSettings,
    LogSettings,
    Name,
    Port,
    QdrantSettings,
    RedisSettings,
    RequestsSettings,
    SemanticSettings,
    TraceSettings,
)
from gateway.settings_tree import PREFIX, SettingsError, allowed, build, is_table_list, keys
from gateway.upstream_settings import UpstreamSettings
from semantic_layer import read_keys

NOT_SETTINGS = frozenset({"STRATA_CONFIG", "STRATA_PEERS", "STRATA_BENCH"})
NOT_SETTINGS_PREFIX = "STRATA_TEST_"
NO_PROXY = "none"
OWN_HEADERS = frozenset(
    {"authorization", "x-api-key", "host", "connection", "content-length", "content-type"}
    | {"content-encoding", "transfer-encoding", "accept", "accept-encoding", "cookie", "te"}
    | {"expect", "upgrade", "trailer", "keep-alive", "x-request-id", "x-strata-admin-key"}
)

__all__ = ["Settings", "SettingsError", "UpstreamSettings", "allowed", "describe"]
__all__ += ["load_settings", "variables"]


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
    drain_s: DrainSeconds = 30.0
    redis: RedisSettings = field(default_factory=RedisSettings)
    qdrant: QdrantSettings = field(default_factory=QdrantSettings)
    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    local: LocalSettings = field(default_factory=LocalSettings)
    semantic: SemanticSettings = field(default_factory=SemanticSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    requests: RequestsSettings = field(default_factory=RequestsSettings)
    dashboard: DashboardSettings = field(default_factory=DashboardSettings)
    layout: LayoutSettings = field(default_factory=LayoutSettings)
    log: LogSettings = field(default_factory=LogSettings)
    traces: TraceSettings = field(default_factory=TraceSettings)
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
    _check_ports(settings)
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
    secrets = (
        (tree, "admin_key"),
        (tree["qdrant"], "api_key"),
        (tree["cache"], "encryption_key"),
        (tree["traces"], "headers"),
    )
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


def _check_ports(settings: Settings) -> None:
    urls = {
        "redis.url": settings.redis.url,
        "qdrant.url": settings.qdrant.url,
        "traces.endpoint": settings.traces.endpoint or "",
    }
    for at, upstream in enumerate(settings.upstreams):
        urls[f"upstreams[{at}].base_url"] = upstream.base_url
        for number, replica in enumerate(upstream.replicas):
            urls[f"upstreams[{at}].replicas[{number}].url"] = replica.url
    for key, url in urls.items():
        try:
            urlsplit(url).port  # noqa: B018 - reading it checks it
        except ValueError as error:
            raise SettingsError(f"{key}: {_masked_url(url)!r} is not allowed: {error}") from None


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
