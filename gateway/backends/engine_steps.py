"""One sequence of the engine: waited for, clocked, begun anew where the engine died over it.

Its errors become a backend's. Knows no text.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway.backends.phases import OnPhase, Phases
from gateway.errors import BackendError, BackendUnavailable, BadRequest, ContextTooLong
from prefix_layer import EngineClient, EngineFailed, EngineUnavailable, Generate, Ready, Tokens


class EngineSteps:
    """Runs sequences; an engine that is starting is waited for up to ``ready_timeout_s``.

    ``on_phase`` is told the seconds of queue, prefill and decode.
    """

    def __init__(self, client: EngineClient, on_phase: OnPhase, ready_timeout_s: float) -> None:
        self._client = client
        self._on_phase = on_phase
        self._ready_timeout_s = ready_timeout_s

    async def ready(self) -> Ready:
        """Wait until the engine takes commands.

        Raises:
            BackendUnavailable: it failed, was closed, or needs longer.
        """
        try:
            return await self._client.wait_ready(self._ready_timeout_s)
        except EngineUnavailable as error:
            raise _unavailable(error) from error

    async def steps(
        self, command: Generate, grammar_field: str | None = None
    ) -> AsyncGenerator[Tokens, None]:
        """Run one sequence; once more on the next engine if this one dies before its first token.

        Raises:
            BadRequest: the grammar that ``grammar_field`` asks for cannot be followed.
            ContextTooLong: the prompt does not fit.
            BackendError: the engine is down, or broke.
        """
        try:
            async with aclosing(self._anew_once(command)) as steps:
                async for tokens in steps:
                    yield tokens
                    if tokens.finish_reason is not None:
                        return
        except EngineUnavailable as error:
            raise _unavailable(error) from error
        except EngineFailed as error:
            raise _translate(error, grammar_field) from error
        raise BackendError("the local model ended without a finish reason")

    async def _anew_once(self, command: Generate) -> AsyncGenerator[Tokens, None]:
        has_begun = False
        try:
            async with aclosing(self._clocked(command)) as steps:
                async for tokens in steps:
                    has_begun = True
                    yield tokens
        except EngineFailed as error:
            if has_begun or error.code != "engine_restarted":
                raise
        else:
            return
        await self._client.wait_ready(self._ready_timeout_s)
        async with aclosing(self._clocked(command)) as steps:
            async for tokens in steps:
                yield tokens

    async def _clocked(self, command: Generate) -> AsyncGenerator[Tokens, None]:
        with Phases(self._on_phase) as phases:
            async with aclosing(self._client.generate(command)) as steps:
                async for tokens in steps:
                    phases.saw(tokens)
                    yield tokens


def _unavailable(error: EngineUnavailable) -> BackendUnavailable:
    return BackendUnavailable(f"the local model is not available: {error}")


def _translate(error: EngineFailed, grammar_field: str | None) -> BackendError | BadRequest:
    if error.code == "bad_grammar":
        return BadRequest(
            f"{grammar_field} cannot be followed: {error.message}",
            param=grammar_field,
            code="unsupported_schema",
        )
    if error.code == "prompt_too_long":
        return ContextTooLong(error.message, param="messages")
    return BackendError(f"the local model failed: {error.message}", code=error.code)
