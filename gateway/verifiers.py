"""Opens what decides whether a stored answer is right: the verifier that the settings name."""

import asyncio

from gateway.bundled import EMBEDDER
from gateway.settings import Settings
from semantic_layer import ThreadedVerifier, Verifier, load_verifier

NONE = "none"


async def open_verifier(settings: Settings) -> Verifier | None:
    """Load the verifier; None when the semantic layer is off or does without.

    Raises:
        VerifierFailed: there is no such model, or it does not load.
    """
    named = settings.semantic.verifier
    if not settings.semantic.enabled or named == NONE:
        return None
    assert settings.models_dir is not None, "load_settings fills it in"
    base = settings.models_dir / EMBEDDER.model_id
    return ThreadedVerifier(await asyncio.to_thread(load_verifier, named, base))
