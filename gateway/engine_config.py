"""From settings to what the local model's engine is built from."""

from pathlib import Path

from gateway.bundled import CHAT
from gateway.hub import find_model, served_name
from gateway.settings import Settings
from prefix_layer import EngineConfig


def local_model_folder(settings: Settings) -> Path:
    """Return the local model's folder; a hub name that is not cached yet is downloaded.

    Raises:
        ModelNotHere: with one clear line.
    """
    if settings.local.model != "bundled":
        return find_model(settings.local.model)
    assert settings.models_dir is not None, "load_settings fills it in"
    return settings.models_dir / CHAT.model_id


def local_model_id(settings: Settings) -> str:
    """Return the id that the local model is served under."""
    name = settings.local.model
    return CHAT.model_id if name == "bundled" else served_name(name)


def engine_config(settings: Settings, folder: Path) -> EngineConfig:
    """Build the engine's configuration for a model folder."""
    local = settings.local
    return EngineConfig(
        model_path=folder,
        dtype=local.dtype,
        device=local.device,
        weights=local.weights,
        precision=local.precision,
        block_size=local.block_size,
        kv_tokens=local.kv_tokens,
        max_batch_tokens=local.max_batch_tokens,
        max_sequences=local.max_sequences,
        eviction=local.eviction,
        kv_ttl_s=local.kv_ttl_s,
        prefix_caching=local.prefix_caching == "on",
        host_kv_bytes=local.host_kv_bytes,
        disk_kv_bytes=local.disk_kv_bytes,
        kv_dir=(local.kv_dir or settings.data_dir / "kv").absolute(),
        kv_codec=local.kv_codec,
        kv_events=_kv_events(settings),
    )


def _kv_events(settings: Settings) -> Path | None:
    named = settings.local.kv_events
    if named == "off":
        return None
    path = settings.data_dir / "kv-events.sock" if named == "on" else Path(named).expanduser()
    return path.absolute()
