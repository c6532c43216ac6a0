"""The local model's engine, started for a measurement and stopped after it."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.bundled import CHAT, prepare_model
from gateway.cli.progress import Progress
from gateway.engine_config import engine_config, local_model_folder
from gateway.errors import StrataError
from gateway.settings import Settings
from prefix_layer import EngineClient, Ready

_LOAD_TIMEOUT_S = 600.0


class NoLocalModel(StrataError):
    """There is no local model to measure."""


@asynccontextmanager
async def started_engine(
    settings: Settings, tell: Progress
) -> AsyncIterator[tuple[EngineClient, Ready]]:
    """Start an engine of its own by the settings, without tiers and events; disturbs no gateway.

    Raises:
        NoLocalModel, ModelNotHere, EngineUnavailable: one line says why there is no engine.
    """
    if settings.local.model == "none":
        raise NoLocalModel("local.model is none: there is no engine to measure")
    if settings.local.model == "bundled":
        assert settings.models_dir is not None, "load_settings fills it in"
        prepare_model(CHAT, settings.models_dir, tell)
    config = engine_config(settings, local_model_folder(settings))
    alone = dataclasses.replace(config, host_kv_bytes=0, disk_kv_bytes=0, kv_events=None)
    engine = EngineClient(alone)
    try:
        tell("loading the model")
        await engine.start()
        yield engine, await engine.wait_ready(_LOAD_TIMEOUT_S)
    finally:
        await engine.close()
