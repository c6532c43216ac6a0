"""Questions asked again: whether their answers were still kept. Pure, over recorded requests."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gateway.evidence import Glance

Key = tuple[str, str]
_KEPT = ("exact", "semantic")


@dataclass(frozen=True, slots=True)
class Often:
    """A question that missed again and again, though it had been answered before."""

    question: str
    misses: int


@dataclass(frozen=True, slots=True)
class Repeats:
    """What became of kept answers.

    ``expired_s`` holds, by intent, the ages at which an expired answer was asked for again;
    ``gone`` counts the repeats that missed though their answer should still have lived. Of the
    answers whose time ran out, ``died`` counts all and ``unused`` those that never served.
    """

    expired_s: Mapping[str, list[float]] = field(default_factory=dict)
    gone: int = 0
    died: Mapping[str, int] = field(default_factory=dict)
    unused: Mapping[str, int] = field(default_factory=dict)
    often: list[Often] = field(default_factory=list)

    @property
    def num_expired(self) -> int:
        """Repeats that came after their answer's time."""
        return sum(map(len, self.expired_s.values()))


def repeats_of(
    requests: Iterable[Glance], ttl_of: Callable[[str | None], float], now: float
) -> Repeats:
    """Follow each answer through requests, oldest first.

    ``ttl_of`` tells how long an intent's answers live, in seconds; ``now`` is Unix seconds.
    """
    stored: dict[Key, Glance] = {}
    served: set[Key] = set()
    misses: Counter[Key] = Counter()
    expired: defaultdict[str, list[float]] = defaultdict(list)
    died: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    gone = 0

    def bury(key: Key) -> None:
        intent = stored[key].intent or "none"
        died[intent] += 1
        unused[intent] += key not in served

    for request in requests:
        if request.entry is None or _is_unanswered(request):
            continue
        key = request.tenant, request.entry
        if request.outcome in _KEPT:
            served.add(key)
        elif request.outcome == "miss":
            earlier = stored.get(key)
            age_s = request.at - request.seconds - earlier.at if earlier is not None else -1.0
            if age_s >= 0:
                misses[key] += 1
                if age_s >= ttl_of(request.intent):
                    expired[request.intent or "none"].append(age_s)
                    bury(key)
                    served.discard(key)
                else:
                    gone += 1
            stored[key] = request
    for key, request in stored.items():
        if request.at + ttl_of(request.intent) < now:
            bury(key)
    often = [Often(stored[key].question, count) for key, count in misses.most_common(3)]
    return Repeats(dict(expired), gone, dict(died), dict(unused), often)


def _is_unanswered(request: Glance) -> bool:
    """Say whether only the cache was asked, and nothing was there."""
    return request.outcome == "miss" and request.prompt_tokens is None
