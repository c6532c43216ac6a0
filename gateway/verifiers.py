"""Opens the models that help to decide whether a stored answer is right, as the settings name."""

import asyncio
from contextlib import suppress

from gateway import judge, rewriter
from gateway.backends.local import LocalBackend
from gateway.backends.routing import Backends
from gateway.bundled import EMBEDDER
from gateway.errors import StrataError
from gateway.hub import check_library_model
from gateway.settings import Settings, SettingsError
from semantic_layer import BUNDLED_VERIFIER, ThreadedVerifier, Verifier, load_verifier

NONE = "none"
JUDGE = "judge:"


async def open_verifier(settings: Settings, backends: Backends) -> Verifier | None:
    """Open the verifier; None when the semantic layer is off or does without.

    Raises:
        ModelNotHere, VerifierFailed: there is no such model, or it does not load.
        SettingsError: the judge is no model that is served here.
    """
    named = settings.semantic.verifier
    if not settings.semantic.enabled or named == NONE:
        return None
    if named.startswith(JUDGE):
        model = named.removeprefix(JUDGE)
        _check_served("verifier", model, settings, backends)
        return judge.JudgeVerifier(backends, model)
    assert settings.models_dir is not None, "load_settings fills it in"
    if named != BUNDLED_VERIFIER:
        await asyncio.to_thread(check_library_model, named, "cross-encoder")
    base = settings.models_dir / EMBEDDER.model_id
    return ThreadedVerifier(await asyncio.to_thread(load_verifier, named, base))


def open_rewriter(settings: Settings, backends: Backends) -> rewriter.ModelRewriter | None:
    """Open the rewriter; None when the semantic layer is off or does without.

    Raises:
        SettingsError: it is no model that is served here.
    """
    named = settings.semantic.rewriter
    if not settings.semantic.enabled or named == NONE:
        return None
    _check_served("rewriter", named, settings, backends)
    return rewriter.ModelRewriter(backends, named)


async def pin_instructions(settings: Settings, local: LocalBackend) -> int:
    """Compute and pin the instructions of judge and rewriter where the local model is meant.

    Returns how many were pinned; the others are computed with the first question.
    """
    served = {model.model_id for model in local.models()}
    semantic, pinned = settings.semantic, 0
    judging = semantic.verifier.removeprefix(JUDGE) if semantic.verifier.startswith(JUDGE) else ""
    wanted = (
        (judging, judge.instructed(judging), judge.SALT),
        (semantic.rewriter, rewriter.instructed(semantic.rewriter), rewriter.SALT),
    )
    for named, start, salt in wanted:
        if named in served and semantic.enabled:
            with suppress(StrataError):
                await local.prefix.warm(start, salt, pin=True, public=False)
                pinned += 1
    return pinned


def _check_served(key: str, model: str, settings: Settings, backends: Backends) -> None:
    """Refuse a model that nobody serves; an upstream that is asked for its models may yet."""
    may_come = any(upstream.models is None for upstream in settings.upstreams)
    if model and (may_come or backends.find(model) is not None):
        return
    served = ", ".join(each.model_id for each in backends.models()) or "none"
    raise SettingsError(f"semantic.{key}: no model {model!r} is served here; served: {served}")
