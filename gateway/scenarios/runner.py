"""Sends a workload to a backend and takes the time."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from gateway.backends.base import Backend, Delta, Final, Finish, Usage, Work
from gateway.backends.tokenizer import Tokenizer
from gateway.layout.kv_mirror import KvMirror
from gateway.scenarios.outcome import Outcome
from gateway.scenarios.workloads import Load, Messages
from prefix_layer import EngineClient


@dataclass(frozen=True, slots=True)
class Target:
    """A local model: its backend, and its engine, which is asked what it evicted.

    ``tokenizer`` is the model's own.
    """

    backend: Backend
    engine: EngineClient
    tokenizer: Tokenizer
    model_id: str
    max_tokens: int = 8


async def run_scenario(
    load: Load, outcome: Outcome, target: Target, deadline_s: float, salt: bytes = b"scenario"
) -> None:
    """Send what the load asks for, batch by batch, from an empty cache on.

    ``deadline_s`` of `time.monotonic` cuts it short. ``salt`` tells runs apart afterwards.

    Raises:
        BackendError: the engine is down, or broke.
        BadRequest: a prompt is too long for the model.
    """
    before = await target.engine.reset()
    mirror = KvMirror(target.tokenizer)
    try:
        batch = next(load)
        while True:
            if time.monotonic() > deadline_s:
                outcome.cut = True
                break
            for chat in batch:
                outcome.allowed_tokens += mirror.estimate({"messages": chat}).hit_tokens
                mirror.sent({"messages": chat})
            answers = await asyncio.gather(*(_ask(target, chat, outcome, salt) for chat in batch))
            for chat, answer in zip(batch, answers, strict=True):
                tokens = answer.num_tokens
                mirror.saw({"messages": chat}, answer.text, tokens, is_whole=answer.is_whole)
            batch = load.send([answer.text for answer in answers])
    except StopIteration:
        pass
    after = await target.engine.stats()
    outcome.num_evicted += after.evictions_by_tier["device"] - before.evictions_by_tier["device"]


@dataclass(frozen=True, slots=True)
class _Answer:
    text: str
    num_tokens: int
    is_whole: bool


async def _ask(target: Target, chat: Messages, outcome: Outcome, salt: bytes) -> _Answer:
    body = {"messages": chat, "temperature": 0, "max_tokens": target.max_tokens}
    work = Work("scenario", target.model_id, body, salt)
    begin = time.perf_counter()
    ttft_s: float | None = None
    parts: list[str] = []
    reason, usage = "", Usage()
    events: AsyncIterator[Any] = target.backend.stream(work)
    async for event in events:
        if ttft_s is None:
            ttft_s = time.perf_counter() - begin
        match event:
            case Delta():
                parts.append(event.text)
            case Finish():
                reason = event.reason
            case Final():
                usage = event.usage
                outcome.count(usage, ttft_s)
    return _Answer("".join(parts), usage.completion_tokens, reason != "length")
