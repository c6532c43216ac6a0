"""What would raise a hit share, and by how many tokens: mends of prompts and of the deployment."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from gateway.backends.volatile import VolatileSpan


@dataclass(frozen=True, slots=True)
class Mend:
    """One change and the prompt tokens that it would let the cache find.

    ``of_prompts`` is False of a change to the deployment.
    """

    cause: str
    mend: str
    tokens: int
    of_prompts: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        return asdict(self)


def mends_of(
    spans: Iterable[VolatileSpan], num_missed: int, num_evicted: int, *, is_on: bool
) -> list[Mend]:
    """List mends, best first.

    ``num_missed`` tokens were allowed by the prompts and not found; ``is_on`` says whether prompts
    are cached at all.
    """
    found = [Mend(span.cause, span.mend, span.lost_tokens) for span in spans]
    if num_missed > 0 and not is_on:
        found.append(Mend("caching_off", "set local.prefix_caching to on", num_missed, False))
    elif num_missed > 0 and num_evicted:
        text = "enlarge the pool (local.kv_tokens), or keep KV in tiers (local.host_kv_bytes)"
        found.append(Mend("evicted", text, num_missed, False))
    return best(found, len(found))


def best(mends: Iterable[Mend], count: int) -> list[Mend]:
    """Add up equal mends, and return those that pay most."""
    tokens: dict[Mend, int] = {}
    for mend in mends:
        key = Mend(mend.cause, mend.mend, 0, mend.of_prompts)
        tokens[key] = tokens.get(key, 0) + mend.tokens
    summed = [Mend(key.cause, key.mend, count, key.of_prompts) for key, count in tokens.items()]
    return sorted((mend for mend in summed if mend.tokens), key=lambda m: -m.tokens)[:count]
