"""The local model behind the `Backend` seam: chat requests to token ids and back.

Text work that grows with a prompt (template, tokenizer) runs in worker threads; what one token
costs (microseconds) runs on the event loop.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from gateway.backends.base import Event, Final, Finish, ModelInfo, PartHealth, Usage, Work
from gateway.backends.calling_choice import CallingChoice
from gateway.backends.choice import Choice
from gateway.backends.context import too_long
from gateway.backends.engine_steps import EngineSteps
from gateway.backends.explanation import Prompt
from gateway.backends.legacy_functions import (
    as_function_call,
    in_older_words,
    speaks_of_functions,
    with_tools,
)
from gateway.backends.local_completions import LocalCompletions
from gateway.backends.local_prefix import LocalPrefix
from gateway.backends.merge import merge
from gateway.backends.phases import OnPhase, no_phase
from gateway.backends.plan import Plan
from gateway.backends.prompt_reader import PromptReader
from gateway.backends.recent_prompts import RecentPrompts
from gateway.backends.recent_requests import RecentRequests
from gateway.backends.sampling import NEUTRAL, Wish, read_wish, refuse_unsupported
from gateway.backends.tokenizer import Tokenizer, fingerprint_text_files
from gateway.backends.tool_format import ToolParserName
from gateway.backends.tool_parser import ToolParser
from gateway.errors import BackendUnavailable, BadRequest
from prefix_layer import (
    EngineClient,
    EngineState,
    Generate,
    Ready,
    Sampling,
    fingerprint_model,
    weights_name,
)

P = ParamSpec("P")
T = TypeVar("T")

_NUM_THREADS = 2
_HEALTH_STATES: dict[EngineState, Literal["ready", "starting", "down"]] = {
    "starting": "starting",
    "restarting": "starting",
    "ready": "ready",
    "failed": "down",
    "closed": "down",
}


class LocalBackend:
    """Serves one model of an engine process; closes the engine's client when closed.

    An answer ends after ``default_max_tokens`` where the request names no limit, and always where
    the context ends: a larger limit is cut to the room that is left. Requests wait up to
    ``ready_timeout_s`` for an engine that is starting. The fingerprint comes from the model folder
    and the engine's settings alone, so it is known before the engine is, and outlives it.
    ``memory_path`` is a file that keeps digests of prompts, to explain misses after a restart.
    ``tokenizer`` is the model's. ``on_phase`` is told the seconds of queue, prefill and decode.

    Raises:
        BackendUnavailable: the folder holds no usable tokenizer or model; one line.
    """

    name = "local"

    def __init__(
        self,
        model_id: str,
        model_path: Path,
        client: EngineClient,
        *,
        default_max_tokens: int = 1024,
        ready_timeout_s: float = 30.0,
        memory_path: Path | None = None,
        tool_parser: ToolParserName | None = None,
        on_phase: OnPhase = no_phase,
    ) -> None:
        self._client = client
        self._engine = EngineSteps(client, on_phase, ready_timeout_s)
        self.tokenizer = Tokenizer(model_path)
        self._reader = PromptReader(self.tokenizer, tool_parser)
        fingerprint = _fingerprint(model_path, client)
        self._info = ModelInfo(model_id, "strata", fingerprint, neutral=NEUTRAL)
        self._recent = RecentPrompts()
        self._memory_path = memory_path
        self._requests = RecentRequests()
        if memory_path is not None:
            self._recent.load(memory_path)
        self.prefix = LocalPrefix(
            client, self.tokenizer, self._recent, self._requests, fingerprint, self.read
        )
        self._default_max_tokens = default_max_tokens
        self._threads = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="local-text")
        self._numbers = itertools.count()
        self._completions = LocalCompletions(
            self.tokenizer, self._threads, self._engine.ready, self._engine.steps
        )

    def models(self) -> list[ModelInfo]:
        """List the one model, whether or not its engine is up."""
        return [self._info]

    async def stream(self, work: Work) -> AsyncGenerator[Event, None]:
        """Generate; closing the iterator aborts the work within one step.

        Raises:
            BadRequest: the request cannot be served as it is (before the first event).
            BackendError: the engine is down, or broke (also after events were given).
        """
        generate = self._completions.stream if work.api == "completions" else self._chat
        if speaks_of_functions(work.body):
            generate = self._chat_with_functions
        async with aclosing(generate(work)) as events:
            async for event in events:
                yield event

    async def _chat_with_functions(self, work: Work) -> AsyncGenerator[Event, None]:
        try:
            async with aclosing(self._chat(with_tools(work))) as events:
                async for event in events:
                    yield as_function_call(event)
        except BadRequest as error:
            raise in_older_words(error) from error

    async def _chat(self, work: Work) -> AsyncGenerator[Event, None]:
        refuse_unsupported(work.body)
        plan, prompt = await self._in_thread(
            self._reader.read, work.body, work.salt, self._client.ready
        )
        ready = await self._engine.ready()
        stop_ids = self.tokenizer.stop_ids
        wish = read_wish(work.body, vocab_size=ready.vocab_size, stop_ids=stop_ids)
        token_ids = prompt.token_ids
        max_tokens = self._clamp(wish.max_tokens, len(token_ids), ready)
        choices = [self._choice(index, wish, plan) for index in range(wish.num_choices)]
        commands = [
            self._command(work, token_ids, wish.of_choice(index, max_tokens, plan.grammar))
            for index in range(len(choices))
        ]
        self._recent.record(work.salt, token_ids, prompt.turns)
        self._requests.record(work.salt, work.body, len(prompt.text))
        streams = [self._follow(*pair, plan) for pair in zip(commands, choices, strict=True)]
        async with aclosing(merge(streams)) as events:
            async for event in events:
                yield event
        for choice in choices:
            self._reader.generated.remember(work.salt, prompt.text, token_ids, choice.token_ids)
        self._recent.record(work.salt, token_ids, prompt.turns, choices[0].token_ids)
        yield Final(_usage(len(token_ids), choices))

    async def count_tokens(self, work: Work) -> int:
        """Return the number of tokens of the whole prompt.

        Raises:
            BadRequest: the request cannot be served as it is.
        """
        return len((await self.read(work.body, work.salt)).token_ids)

    async def has_room(self, work: Work) -> bool:
        """Say whether the prompt fits, with a quarter of the context or the asked limit beside it.

        Raises:
            BadRequest: the request cannot be served as it is.
            BackendUnavailable: the engine is not ready.
        """
        ready = await self._engine.ready()
        asked = read_wish(work.body, vocab_size=ready.vocab_size, stop_ids=()).max_tokens
        wanted = min(asked or self._default_max_tokens, ready.context_length // 4)
        return await self.count_tokens(work) + wanted <= ready.context_length

    async def read(self, body: dict[str, Any], salt: bytes) -> Prompt:
        """Return the prompt that the model gets for a request.

        Raises:
            BadRequest: the request cannot be served as it is.
        """
        refuse_unsupported(body)
        if speaks_of_functions(body):
            body = with_tools(Work("", "", body, salt)).body
        _, prompt = await self._in_thread(self._reader.read, body, salt)
        return prompt

    async def health(self) -> PartHealth:
        """Say whether requests can be served now."""
        state = _HEALTH_STATES[self._client.state]
        return PartHealth(ok=state == "ready", state=state, detail=self._client.detail)

    async def close(self) -> None:
        """Stop the engine and the worker threads; idempotent."""
        await self._client.close()
        if self._memory_path is not None:
            self._recent.save(self._memory_path, self._info.fingerprint)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _choice(self, index: int, wish: Wish, plan: Plan) -> Choice | CallingChoice:
        if not plan.tools:
            return Choice(index, self.tokenizer, wish.stops)
        plain = Choice(index, self.tokenizer, (), marked=self._reader.markers)
        return CallingChoice(plain, ToolParser(self._reader.form), wish.stops)

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        call = partial(work, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _clamp(self, asked: int | None, num_prompt: int, ready: Ready) -> int:
        room = ready.context_length - num_prompt
        if room < 1:
            raise too_long(str(num_prompt), ready)
        return min(self._default_max_tokens if asked is None else asked, room)

    def _command(self, work: Work, prompt: list[int], sampling: Sampling) -> Generate:
        return Generate(
            request_id=f"{work.request_id}/{next(self._numbers)}",
            prompt=prompt,
            sampling=sampling,
            salt=work.salt,
        )

    async def _follow(
        self, command: Generate, choice: Choice | CallingChoice, plan: Plan
    ) -> AsyncGenerator[Event, None]:
        async with aclosing(self._engine.steps(command, plan.source)) as steps:
            async for tokens in steps:
                if (delta := choice.push(tokens)) is not None:
                    yield delta
                if choice.finish_reason is not None:
                    yield Finish(choice.index, choice.finish_reason, choice.stop)
                    return


def _fingerprint(folder: Path, client: EngineClient) -> str:
    config = client.config
    try:
        weights = fingerprint_model(folder, weights_name(f"{config.dtype}@{config.device}", config))
        return f"{weights}-{fingerprint_text_files(folder)}"
    except (OSError, ValueError) as error:
        raise BackendUnavailable(f"no usable model in {folder}: {error}") from error


def _usage(num_prompt: int, choices: Sequence[Choice | CallingChoice]) -> Usage:
    """Count the prompt once; cached is what even the choice that found least did find."""
    return Usage(
        prompt_tokens=num_prompt,
        completion_tokens=sum(choice.num_tokens for choice in choices),
        cached_tokens=min(choice.num_cached_tokens for choice in choices),
    )
