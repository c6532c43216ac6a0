"""This machine's embedding model, loaded once, when first asked for."""

import asyncio
from hashlib import blake2b
from pathlib import Path

from gateway.hub import check_library_model
from semantic_layer import ThreadedEmbedder, load_encoder

_OWNER = "sentence-transformers"  # of models with a short name


class EmbeddingModel:
    """One sentence-transformers model; ``name`` is its folder or hub name."""

    def __init__(self, name: str | Path, device: str) -> None:
        self._name = name
        self._device = device
        self._lock = asyncio.Lock()
        self._embedder: ThreadedEmbedder | None = None

    async def open(self) -> ThreadedEmbedder:
        """Return the model, loading it first if need be.

        Raises:
            ModelNotHere, EmbedderFailed: there is no such model, or it does not load.
        """
        async with self._lock:
            if self._embedder is None:
                await asyncio.to_thread(check_library_model, str(self._name), _OWNER)
                encoder = await asyncio.to_thread(load_encoder, self._name, device=self._device)
                self._embedder = ThreadedEmbedder(encoder)
            return self._embedder

    @property
    def fingerprint(self) -> str:
        """What changes with the vectors: of a model not loaded yet, its files' sizes and times."""
        if self._embedder is not None:
            return self._embedder.fingerprint
        digest = blake2b(str(self._name).encode(), digest_size=16)
        folder = Path(self._name).expanduser()
        for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
            stat = path.stat()
            digest.update(f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    async def close(self) -> None:
        """Stop its thread; idempotent."""
        if self._embedder is not None:
            await self._embedder.close()
