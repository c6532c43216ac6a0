"""Made-up loads, the same for the same seed. Knows no policy and no pool."""

import random
from collections.abc import Callable, Iterator
from itertools import accumulate, count

from prefix_layer.errors import TraceError
from prefix_layer.trace.file import Trace

_NUM_PROMPTS = 2000
_RECENT = 60
_REPEAT_SHARE = 0.7
_CONTINUE_SHARE = 0.6

Requests = Iterator[list[int]]


class _Ids:
    """Makes fresh block ids, and prompts of them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._ids = count(1)
        self.root = [0]

    def take(self, low: int, high: int) -> list[int]:
        """Make ``low`` to ``high`` blocks that nobody has."""
        return [next(self._ids) for _ in range(self._rng.randint(low, high))]

    def prompts(self) -> list[list[int]]:
        """Make prompts that have only the first block in common."""
        return [self.root + self.take(4, 40) for _ in range(_NUM_PROMPTS)]


def _uniform(rng: random.Random, ids: _Ids) -> Requests:
    """Ask any of the known prompts, all alike, each time with a new question."""
    prompts = ids.prompts()
    while True:
        yield rng.choice(prompts) + ids.take(1, 2)


def _zipf(rng: random.Random, ids: _Ids) -> Requests:
    """Ask the known prompts by popularity: the i-th with weight 1/i."""
    prompts = ids.prompts()
    weights = list(accumulate(1 / rank for rank in range(1, len(prompts) + 1)))
    while True:
        yield rng.choices(prompts, cum_weights=weights)[0] + ids.take(1, 2)


def _temporal(rng: random.Random, ids: _Ids) -> Requests:
    """Ask again what was asked lately, with a working set that drifts."""
    prompts = ids.prompts()
    recent: list[list[int]] = []
    while True:
        if not recent or rng.random() > _REPEAT_SHARE:
            recent = [*recent[-_RECENT:], rng.choice(prompts)]
        yield rng.choice(recent) + ids.take(1, 2)


def _conversations(rng: random.Random, ids: _Ids) -> Requests:
    """Open conversations and go on with them, most recent ones more often."""
    under_way: list[list[int]] = []
    while True:
        if under_way and rng.random() < _CONTINUE_SHARE:
            place = max(0, len(under_way) - 1 - int(rng.expovariate(1 / _RECENT)))
            history = under_way.pop(place)
        else:
            history = ids.root + ids.take(2, 20)
        history = history + ids.take(1, 4)
        under_way = [*under_way[-20 * _RECENT :], history]
        yield history


def _scan(_: random.Random, ids: _Ids) -> Requests:
    """Ask long prompts that never come back."""
    while True:
        yield ids.take(20, 120)


def _mixed(rng: random.Random, ids: _Ids) -> Requests:
    """Mix popular prompts, conversations, and scans: 5, 4 and 1 in 10 requests."""
    parts = [load(rng, ids) for load in (_zipf, _conversations, _scan)]
    while True:
        yield next(rng.choices(parts, weights=(5, 4, 1))[0])


_LOADS: dict[str, Callable[[random.Random, _Ids], Requests]] = {
    "uniform": _uniform,
    "zipf": _zipf,
    "temporal": _temporal,
    "mixed": _mixed,
    "conversations": _conversations,
}
SIMULATED = tuple(_LOADS)


def make_load(name: str, num_requests: int = 10_000, seed: int = 0) -> Trace:
    """Make a load of this name.

    Raises:
        TraceError: there is none; the message lists those there are.
    """
    if name not in _LOADS:
        raise TraceError(f"no simulated load {name!r}; use {', '.join(SIMULATED)}")
    rng = random.Random(seed)  # noqa: S311 - a load, not a secret
    requests = _LOADS[name](rng, _Ids(rng))
    return Trace(name, [next(requests) for _ in range(num_requests)])
