"""Sends a workload to a backend and takes the time."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from gateway.backends.base import Backend, Delta, Final, Usage, Work
from gateway.scenarios.workloads import Load, Messages
from prefix_layer import EngineClient

_HIT_FROM = 0.5


@dataclass(slots=True)
class Outcome:
    """What one scenario met with; a request that finds half its prompt cached is a hit."""

    num_requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    num_evicted: int = 0
    hit_ttfts_s: list[float] = field(default_factory=list)
    miss_ttfts_s: list[float] = field(default_factory=list)
    cut: bool = False

    @property
    def hit_share(self) -> float:
        """Share of prompt tokens that were cached."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the figures; medians in seconds, None without such a request."""
        return {
            "requests": self.num_requests,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "hit_share": self.hit_share,
            "hits": len(self.hit_ttfts_s),
            "misses": len(self.miss_ttfts_s),
            "ttft_hit_s": median(self.hit_ttfts_s) if self.hit_ttfts_s else None,
            "ttft_miss_s": median(self.miss_ttfts_s) if self.miss_ttfts_s else None,
            "evictions": self.num_evicted,
            "cut": self.cut,
        }

    def count(self, usage: Usage, ttft_s: float) -> None:
        """Add one request."""
        self.num_requests += 1
        self.prompt_tokens += usage.prompt_tokens
        self.cached_tokens += usage.cached_tokens
        is_hit = usage.cached_tokens >= _HIT_FROM * usage.prompt_tokens
        (self.hit_ttfts_s if is_hit else self.miss_ttfts_s).append(ttft_s)


@dataclass(frozen=True, slots=True)
class Target:
    """A local model: its backend, and its engine, which is asked what it evicted."""

    backend: Backend
    engine: EngineClient
    model_id: str
    max_tokens: int = 8


async def run_scenario(load: Load, outcome: Outcome, target: Target, deadline_s: float) -> None:
    """Send what the load asks for, batch by batch, from an empty cache on.

    ``deadline_s`` of `time.monotonic` cuts it short.

    Raises:
        BackendError: the engine is down, or broke.
        BadRequest: a prompt is too long for the model.
    """
    before = await target.engine.reset()
    try:
        batch = next(load)
        while True:
            if time.monotonic() > deadline_s:
                outcome.cut = True
                break
            answers = await asyncio.gather(*(_ask(target, chat, outcome) for chat in batch))
            batch = load.send(list(answers))
    except StopIteration:
        pass
    after = await target.engine.stats()
    outcome.num_evicted += after.evictions_by_tier["device"] - before.evictions_by_tier["device"]


async def _ask(target: Target, chat: Messages, outcome: Outcome) -> str:
    body = {"messages": chat, "temperature": 0, "max_tokens": target.max_tokens}
    work = Work("scenario", target.model_id, body, b"scenario")
    begin = time.perf_counter()
    ttft_s: float | None = None
    parts: list[str] = []
    events: AsyncIterator[Any] = target.backend.stream(work)
    async for event in events:
        if ttft_s is None:
            ttft_s = time.perf_counter() - begin
        if isinstance(event, Delta):
            parts.append(event.text)
        elif isinstance(event, Final):
            outcome.count(event.usage, ttft_s)
    return "".join(parts)
