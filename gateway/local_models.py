"""Opens the models of this machine: the engine, the embedder, and the backends over them."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from gateway.backends.base import Backend, ModelInfo
from gateway.backends.embeddings import LocalEmbeddings
from gateway.backends.local import LocalBackend
from gateway.backends.phases import OnPhase
from gateway.backends.upstream import UpstreamEmbedder
from gateway.bundled import EMBEDDER, BundledModel
from gateway.embedding_model import EmbeddingModel
from gateway.engine_config import engine_config, local_model_folder, local_model_id
from gateway.hub import served_name
from gateway.settings import Settings
from gateway.upstreams import Upstreams
from prefix_layer import EngineClient
from semantic_layer import Embedder

PROMPT_MEMORY = "recent-prompts"


def embedding_model_of(settings: Settings) -> EmbeddingModel | None:
    """Return this machine's embedding model; None when an upstream's is used."""
    named = settings.embedder.model
    if settings.embedder.upstream is not None:
        return None
    name = _bundled(settings, EMBEDDER) if named == "bundled" else named
    return EmbeddingModel(name, settings.embedder.device)


async def open_embedder(
    settings: Settings, model: EmbeddingModel | None, upstreams: Upstreams
) -> Embedder | None:
    """Open the embedder that the semantic layer uses; None when that layer is off."""
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


def local_backends(
    settings: Settings,
    engine: EngineClient | None,
    embedder: EmbeddingModel | None,
    on_phase: OnPhase,
) -> list[Backend]:
    """Return the backends over the models of this machine."""
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
                on_phase=on_phase,
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


async def start_engine(stack: AsyncExitStack, settings: Settings) -> EngineClient | None:
    """Start the engine process; None when no local model is set. Its model may load still."""
    if settings.local.model == "none":
        return None
    folder = await asyncio.to_thread(local_model_folder, settings)
    engine = EngineClient(engine_config(settings, folder))
    stack.push_async_callback(engine.close)
    await engine.start()
    return engine
