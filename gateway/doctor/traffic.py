"""Recorded requests in figures. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.doctor.repeats import Repeats, repeats_of
from gateway.evidence import Glance, ReasonRow

LOOKED_UP = ("exact", "semantic", "miss")
_DETAIL_OF = ("temperature", "cache-control", "eligible", "intent")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompt tokens of generations: all, and those whose KV was there."""

    requests: int = 0
    tokens: int = 0
    cached: int = 0

    @property
    def share(self) -> float:
        """The share (0..1) of tokens that was there."""
        return self.cached / self.tokens if self.tokens else 0.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The newest recorded requests, of all gateways over one store.

    ``outcomes`` counts by intent and outcome, ``near`` the misses that only the threshold kept
    from being hits. ``skips`` counts the look-ups that left something out, by check, and
    ``details`` by check and what it says, where that is no user's word. ``refused`` counts
    rejected requests by tenant. ``since`` and ``until`` are Unix seconds.
    """

    requests: int = 0
    since: float = 0.0
    until: float = 0.0
    outcomes: Mapping[str, Counter[str]] = field(default_factory=dict)
    near: Mapping[str, int] = field(default_factory=dict)
    skips: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    repeats: Repeats = field(default_factory=Repeats)
    prompts: Prompts = field(default_factory=Prompts)

    def looked_up(self, intent: str | None = None) -> int:
        """Count the requests that were looked up, of one intent or of all."""
        return sum(self.count(outcome, intent) for outcome in LOOKED_UP)

    def count(self, outcome: str, intent: str | None = None) -> int:
        """Count the requests of an outcome, of one intent or of all."""
        of = self.outcomes.values() if intent is None else [self.outcomes.get(intent, Counter())]
        return sum(counts[outcome] for counts in of)


def traffic_of(
    requests: Sequence[Glance],
    *,
    ttl_of: Callable[[str | None], float],
    now: float,
    local_model: str | None = None,
    most_prompts: int = 0,
) -> Traffic:
    """Count requests, newest first.

    ``most_prompts`` is of how many of the local model's newest prompts the tokens are counted.
    """
    outcomes: dict[str, Counter[str]] = {}
    near: Counter[str] = Counter()
    skips: Counter[str] = Counter()
    details: Counter[tuple[str, str]] = Counter()
    refused: Counter[str] = Counter()
    for request in requests:
        intent = request.intent or "none"
        outcomes.setdefault(intent, Counter())[request.outcome] += 1
        refused[request.tenant] += request.outcome == "rejected"
        near[intent] += _is_near(request)
        skipped = {reason.check: reason.detail for reason in request.reasons if _skips(reason)}
        skips.update(skipped.keys())
        details.update((check, text) for check, text in skipped.items() if check in _DETAIL_OF)
    return Traffic(
        requests=len(requests),
        since=requests[-1].at if requests else now,
        until=requests[0].at if requests else now,
        outcomes=outcomes,
        near=near,
        skips=skips,
        details=details,
        refused=+refused,
        repeats=repeats_of(reversed(requests), ttl_of, now),
        prompts=_prompts(requests, local_model, most_prompts),
    )


def _skips(reason: ReasonRow) -> bool:
    return reason.verdict == "skip"


def _is_near(request: Glance) -> bool:
    last = request.reasons[-1] if request.outcome == "miss" and request.reasons else None
    return last is not None and (last.check, last.verdict) == ("threshold", "veto")


def _prompts(requests: Sequence[Glance], model: str | None, most: int) -> Prompts:
    own = [
        request
        for request in requests
        if request.model == model
        and request.outcome in ("miss", "bypass")
        and request.prompt_tokens is not None
        and not request.coalesced
    ][:most]
    return Prompts(
        requests=len(own),
        tokens=sum(request.prompt_tokens or 0 for request in own),
        cached=sum(request.cached_tokens or 0 for request in own),
    )
