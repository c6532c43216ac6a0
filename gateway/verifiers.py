"""Opens what decides whether a stored answer is right: the verifier that the settings name."""

import asyncio

from gateway.backends.local import LocalBackend
from gateway.backends.routing import Backends
from gateway.bundled import EMBEDDER
from gateway.errors import StrataError
from gateway.judge import SALT, JudgeVerifier, instructed
from gateway.settings import Settings
from semantic_layer import ThreadedVerifier, Verifier, load_verifier

NONE = "none"
JUDGE = "judge:"


async def open_verifier(settings: Settings, backends: Backends) -> Verifier | None:
    """Open the verifier; None when the semantic layer is off or does without.

    Raises:
        VerifierFailed: there is no such model, or it does not load.
    """
    named = settings.semantic.verifier
    if not settings.semantic.enabled or named == NONE:
        return None
    if named.startswith(JUDGE):
        return JudgeVerifier(backends, named.removeprefix(JUDGE))
    assert settings.models_dir is not None, "load_settings fills it in"
    base = settings.models_dir / EMBEDDER.model_id
    return ThreadedVerifier(await asyncio.to_thread(load_verifier, named, base))


async def pin_judge(settings: Settings, local: LocalBackend) -> bool:
    """Compute and pin the judge's instructions when it is the local model; say whether it did."""
    named = settings.semantic.verifier.removeprefix(JUDGE)
    if settings.semantic.verifier == named or named not in {m.model_id for m in local.models()}:
        return False
    try:
        await local.prefix.warm(instructed(named), SALT, pin=True, public=False)
    except StrataError:
        return False  # they are computed with the first question, then
    return True
