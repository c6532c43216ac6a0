"""How fast an engine computes, measured, and what that means for any prompt and any hit share."""

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from prefix_layer.client import EngineClient
from prefix_layer.messages import Generate, Ready, Sampling

_SHORT = 16
_LONG = 1024
_DECODE_TOKENS = 17
_REPEATS = 3
_FIRST_ORDINARY_TOKEN = 10


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds of an engine's work.

    A prefill of n tokens behind s cached ones takes ``start_s + token_s·n + pair_s·(n·s + n²/2)``,
    a decode step in a context of m tokens ``step_s + step_pair_s·m``.
    """

    start_s: float
    token_s: float
    pair_s: float
    step_s: float
    step_pair_s: float

    def ttft_s(self, prompt_tokens: int, hit_share: float) -> float:
        """Return the time to the first token when a share of 0..1 of the prompt is cached.

        At least one token is computed.
        """
        cached = min(prompt_tokens - 1, int(prompt_tokens * hit_share))
        computed = prompt_tokens - cached
        pairs = computed * cached + computed**2 / 2
        return self.start_s + self.token_s * computed + self.pair_s * pairs

    def total_s(self, prompt_tokens: int, hit_share: float, output_tokens: int) -> float:
        """Return the time to the last of ``output_tokens``."""
        steps = output_tokens - 1
        context = prompt_tokens + steps / 2
        decode_s = steps * (self.step_s + self.step_pair_s * context)
        return self.ttft_s(prompt_tokens, hit_share) + decode_s


async def measure_rates(
    engine: EngineClient, ready: Ready, tell: Callable[[str], None], seed: int = 0
) -> Rates:
    """Time prompts of three lengths that nothing is cached of, and decode behind two of them.

    Raises:
        EngineUnavailable, EngineFailed: the engine can't be asked.
    """
    runs = _Runs(engine, ready, seed)
    long = min(_LONG, ready.context_length - _DECODE_TOKENS)
    short, middle = min(_SHORT, long), max(1, long // 4)
    tell(f"decode at {short} and {long} tokens, prefill of {short}, {middle} and {long}")
    start_s, near_s = await runs.median(short, _DECODE_TOKENS)
    middle_s, _ = await runs.median(middle, 1)
    long_s, far_s = await runs.median(long, _DECODE_TOKENS)
    token_s, pair_s = _solve((middle, middle_s - start_s), (long, long_s - start_s))
    step_pair_s = max(0.0, (far_s - near_s) / max(1, long - short))
    step_s = max(0.0, near_s - step_pair_s * short)
    return Rates(max(0.0, start_s - short * token_s), token_s, pair_s, step_s, step_pair_s)


class _Runs:
    """Sends prompts of random tokens, each of them new."""

    def __init__(self, engine: EngineClient, ready: Ready, seed: int) -> None:
        self._engine = engine
        self._vocabulary = range(min(_FIRST_ORDINARY_TOKEN, ready.vocab_size - 1), ready.vocab_size)
        self._rng = random.Random(seed)  # noqa: S311 - a load, not a secret
        self._salt = self._rng.randbytes(16)
        self._count = 0

    async def median(self, prompt_tokens: int, output_tokens: int) -> tuple[float, float]:
        """Return seconds to the first token, and of one step after it."""
        times = [await self._time(prompt_tokens, output_tokens) for _ in range(_REPEATS)]
        firsts, steps = zip(*times, strict=True)
        return statistics.median(firsts), statistics.median(steps)

    async def _time(self, prompt_tokens: int, output_tokens: int) -> tuple[float, float]:
        prompt = self._rng.choices(self._vocabulary, k=prompt_tokens)
        self._count += 1
        sampling = Sampling(max_tokens=output_tokens, temperature=0.0)
        command = Generate(f"rates-{self._count}", prompt, sampling, self._salt)
        arrivals = [time.perf_counter()]
        async for _ in self._engine.generate(command):
            arrivals.append(time.perf_counter())  # noqa: PERF401 - each at its own time
        first_s = arrivals[1] - arrivals[0]
        return first_s, (arrivals[-1] - arrivals[1]) / max(1, len(arrivals) - 2)


def _solve(one: tuple[int, float], other: tuple[int, float]) -> tuple[float, float]:
    """Find seconds per token and per pair from two prefills; neither is negative."""
    (n, n_s), (m, m_s) = one, other
    if n == m:
        return max(0.0, m_s / m), 0.0
    pair_s = max(0.0, 2 * (m_s / m - n_s / n) / (m - n))
    return max(0.0, m_s / m - pair_s * m / 2), pair_s
