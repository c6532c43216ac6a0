"""The completions API over the local model: raw prompts, no chat template.

A prompt is continued as it stands. ``echo`` gives it back before the continuation, with
``logprobs`` also those of the prompt's own tokens, which the engine then computes anew.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.backends.base import Delta, Event, Final, Finish, Usage, Work
from gateway.backends.choice import Choice
from gateway.backends.context import too_long
from gateway.backends.legacy_logprobs import LegacyLogprobsWriter
from gateway.backends.merge import merge
from gateway.backends.prompt_reader import QUICKLY_READ
from gateway.backends.sampling import Wish, read_wish
from gateway.backends.tokenizer import Tokenizer
from gateway.errors import BadRequest
from gateway.wire.completions import Prompt, name_of, prompts_of
from prefix_layer import Generate, Ready, Tokens

DEFAULT_MAX_TOKENS = 16  # the API's own
MAX_SEQUENCES = 256
_READ_HERE = ("logprobs", "max_tokens", "n", "best_of")
_CONTEXT_TOKENS = 4  # of the prompt that the text behind it may depend on

Steps = Callable[[Generate], AsyncGenerator[Tokens, None]]


@dataclass(frozen=True, slots=True)
class _Task:
    """One sequence to compute: which prompt, and which of its choices."""

    prompt: list[int]
    text: str  # of the prompt, to be echoed
    num_unseen: int  # tokens that the tokenizer put before the text
    index: int
    place: int


class LocalCompletions:
    """Continues prompts; ``steps`` runs one sequence, ``ready`` waits for the engine."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        threads: Executor,
        ready: Callable[[], Awaitable[Ready]],
        steps: Steps,
    ) -> None:
        self._tokenizer = tokenizer
        self._threads = threads
        self._ready = ready
        self._steps = steps
        self._numbers = itertools.count()

    async def stream(self, work: Work) -> AsyncGenerator[Event, None]:
        """Generate; closing the iterator aborts the work within one step.

        Raises:
            BadRequest: the request cannot be served as it is (before the first event).
            BackendError: the engine is down, or broke (also after events were given).
        """
        body = work.body
        if body.get("suffix"):
            raise _unsupported("suffix")
        ready = await self._ready()
        prompts = await asyncio.get_running_loop().run_in_executor(
            self._threads, self._encode, body["prompt"], ready, bool(body.get("echo"))
        )
        request = _Request(body, self._tokenizer, ready)
        num_candidates = request.best_of or request.num_choices
        if len(prompts) * num_candidates > MAX_SEQUENCES:
            raise BadRequest(f"prompt: more than {MAX_SEQUENCES} answers at once", param="prompt")
        runs = [
            _Run(work, request, task, self._tokenizer, self._steps, next(self._numbers))
            for task in _tasks(prompts, num_candidates)
        ]
        if request.best_of is None:
            async with aclosing(merge([run.events() for run in runs])) as events:
                async for event in events:
                    yield event
        else:
            for chosen in await _best(runs, num_candidates, request.num_choices):
                for event in chosen:
                    yield event
        yield Final(_usage(runs))

    def _encode(
        self, given: Any, ready: Ready, is_echoed: bool
    ) -> list[tuple[list[int], str, int]]:
        """Return each prompt's ids; if it is echoed its text, and how many ids stand for none."""
        found = []
        for at, prompt in enumerate(prompts_of(given)):
            name = name_of(given, at)
            if isinstance(prompt, str) and len(prompt) > QUICKLY_READ:
                least = self._tokenizer.least_tokens(prompt)
                _check_length(name, least, ready, f"at least {least}")
            ids = self._ids_of(prompt, name, ready.vocab_size)
            if not ids:
                raise BadRequest(f"{name}: is empty", param=name)
            _check_length(name, len(ids), ready, str(len(ids)))
            found.append((ids, *(self._spelled(prompt, ids) if is_echoed else ("", 0))))
        return found

    def _ids_of(self, prompt: Prompt, name: str, vocab_size: int) -> list[int]:
        if isinstance(prompt, str):
            return self._tokenizer.encode_raw(prompt)
        if max(prompt) >= vocab_size:
            raise BadRequest(f"{name}: token ids go from 0 to {vocab_size - 1}", param=name)
        return prompt

    def _spelled(self, prompt: Prompt, ids: list[int]) -> tuple[str, int]:
        """Return a prompt's text, and how many of its ids the tokenizer put before it."""
        if isinstance(prompt, str):
            plain = self._tokenizer.encode(prompt)
            return prompt, len(ids) - len(plain) if ids[len(ids) - len(plain) :] == plain else 0
        data = b"".join(self._tokenizer.token(token_id)[1] for token_id in ids)
        return data.decode(errors="replace"), 0


def _check_length(name: str, num_tokens: int, ready: Ready, said: str) -> None:
    if num_tokens >= ready.context_length:
        raise too_long(said, ready, name)


def _tasks(prompts: Sequence[tuple[list[int], str, int]], num_candidates: int) -> list[_Task]:
    return [
        _Task(ids, text, num_unseen, at * num_candidates + place, place)
        for at, (ids, text, num_unseen) in enumerate(prompts)
        for place in range(num_candidates)
    ]


class _Request:
    """How to generate, as the request says it."""

    def __init__(self, body: dict[str, Any], tokenizer: Tokenizer, ready: Ready) -> None:
        plain = {name: value for name, value in body.items() if name not in _READ_HERE}
        self.wish: Wish = read_wish(plain, vocab_size=ready.vocab_size, stop_ids=tokenizer.stop_ids)
        self.context_length = ready.context_length
        self.echo = bool(body.get("echo"))
        self.num_choices: int = body.get("n") or 1
        asked_best: int | None = body.get("best_of")
        self.best_of = asked_best if asked_best not in (None, self.num_choices) else None
        self.max_tokens: int = body.get("max_tokens", DEFAULT_MAX_TOKENS)
        self.num_logprobs: int | None = body.get("logprobs")

    def sampling(self, task: _Task) -> Any:
        """Return the engine's settings for one sequence."""
        room = self.context_length - len(task.prompt)
        ranked = self.best_of is not None
        wanted = self.num_logprobs if self.num_logprobs is not None else 0 if ranked else None
        return msgspec.structs.replace(
            self.wish.of_choice(task.place, max(1, min(self.max_tokens, room))),
            num_logprobs=wanted,
            num_prompt_logprobs=self.num_logprobs if self.echo else None,
        )


class _Run:
    """One sequence on its way."""

    def __init__(
        self,
        work: Work,
        request: _Request,
        task: _Task,
        tokenizer: Tokenizer,
        steps: Steps,
        number: int,
    ) -> None:
        self.task = task
        context = task.prompt[-_CONTEXT_TOKENS:]
        self.choice = Choice(task.index, tokenizer, request.wish.stops, context)
        self._request = request
        self._steps = steps
        self._writer = (
            None
            if request.num_logprobs is None
            else LegacyLogprobsWriter(tokenizer, request.num_logprobs)
        )
        self._command = Generate(
            request_id=f"{work.request_id}/c{number}",
            prompt=task.prompt,
            sampling=request.sampling(task),
            salt=work.salt,
        )
        self._logprobs: list[float] = []

    @property
    def score(self) -> float:
        """Mean log probability of a token; what ``best_of`` ranks by."""
        return sum(self._logprobs) / len(self._logprobs) if self._logprobs else 0.0

    @property
    def num_tokens(self) -> int:
        """Tokens written, those of the prompt not counted."""
        return self.choice.num_tokens if self._request.max_tokens else 0

    async def events(self) -> AsyncGenerator[Event, None]:
        """Give the echo, the deltas and the finish."""
        echo = self._request.echo
        if echo and not self._writer:
            yield Delta(self.task.index, self.task.text)
        if not self._request.max_tokens and not (echo and self._writer):
            yield Finish(self.task.index, "length")
            return
        async with aclosing(self._steps(self._command)) as steps:
            async for tokens in steps:
                if self._writer and tokens.prompt_logprobs is not None:
                    yield self._echoed(self._writer, tokens)
                if not self._request.max_tokens:
                    yield Finish(self.task.index, "length")
                    return
                if (delta := self.choice.push(tokens)) is not None:
                    yield self._written(delta)
                if self.choice.finish_reason is not None:
                    yield Finish(self.task.index, self.choice.finish_reason, self.choice.stop)
                    return

    def _echoed(self, writer: LegacyLogprobsWriter, tokens: Tokens) -> Delta:
        assert tokens.prompt_logprobs is not None, "the caller looked"
        task = self.task
        logprobs = writer.prompt(task.prompt, tokens.prompt_logprobs, task.num_unseen)
        return Delta(task.index, task.text, choice_extra={"logprobs": logprobs})

    def _written(self, delta: Delta) -> Delta:
        self._logprobs += [entry.logprob for entry in delta.logprobs]
        if self._writer is None:
            return Delta(delta.index, delta.text)
        logprobs = self._writer.write(delta.logprobs)
        return Delta(delta.index, delta.text, choice_extra={"logprobs": logprobs})


async def _best(runs: Sequence[_Run], num_candidates: int, num_choices: int) -> list[list[Event]]:
    """Run all; return the events of each prompt's likeliest choices, numbered anew."""
    given: dict[int, list[Event]] = {run.task.index: [] for run in runs}
    async with aclosing(merge([run.events() for run in runs])) as events:
        async for event in events:
            assert not isinstance(event, Final), "runs give no totals"
            given[event.index].append(event)
    chosen = []
    for start in range(0, len(runs), num_candidates):
        ranked = sorted(runs[start : start + num_candidates], key=lambda run: -run.score)
        chosen += [given[run.task.index] for run in ranked[:num_choices]]
    return [
        [msgspec.structs.replace(event, index=index) for event in events]
        for index, events in enumerate(chosen)
    ]


def _usage(runs: Sequence[_Run]) -> Usage:
    """Count each prompt once, and every token written, of choices not chosen too."""
    cached: dict[int, int] = {}
    prompts: dict[int, int] = {}
    for run in runs:
        first = run.task.index - run.task.place
        prompts[first] = len(run.task.prompt)
        found = run.choice.num_cached_tokens
        cached[first] = min(cached.get(first, found), found)
    return Usage(
        prompt_tokens=sum(prompts.values()),
        completion_tokens=sum(run.num_tokens for run in runs),
        cached_tokens=sum(cached.values()),
    )


def _unsupported(field: str) -> BadRequest:
    return BadRequest(
        f"{field} is not supported by the local model", param=field, code="unsupported"
    )
