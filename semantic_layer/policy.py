"""Settings of the cache's decisions; knows no environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from semantic_layer.intents.intent_rules import SEED_RULES, IntentRule
from semantic_layer.outcome import Reason
from semantic_layer.privacy import Private
from semantic_layer.request import CacheControl, CacheQuery


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What is cached, for how long, and how hard is searched.

    ``ttl_s`` holds unless the intent's rule (``intents``) or the request names another time.
    Where no time was named, a stale answer is kept for ``stale_s`` more. Beyond ``max_entries`` (0
    is no limit) the least used ones go. ``private`` says what becomes of requests that hold secrets
    or personal data: ``encrypt`` leaves exact repeats and needs a store that seals.
    Requests above ``max_temperature`` are left alone. A search asks for ``top_k`` neighbours and,
    when none of them may be served, once more for ``top_k_wide``. Deadlines are per call, in
    seconds; ``backoff_s`` is the first pause after ``failures`` in a row.
    """

    semantic: bool = True
    ttl_s: float = 86_400.0
    intents: Mapping[str, IntentRule] = field(default_factory=lambda: SEED_RULES)
    stale_s: float = 0.0
    max_entries: int = 0
    private: Private = "skip"
    max_temperature: float = 1.0
    top_k: int = 8
    top_k_wide: int = 32
    store_deadline_s: float = 0.25
    index_deadline_s: float = 0.25
    embed_deadline_s: float = 1.0
    verify_deadline_s: float = 1.0
    rewrite_deadline_s: float = 2.0
    failures: int = 5
    backoff_s: float = 0.5

    def refusal(self, query: CacheQuery, control: CacheControl) -> Reason | None:
        """Return why the cache takes no part in a request, if it does not."""
        if control.no_cache and control.no_store:
            return Reason("cache-control", "skip", "no-cache and no-store")
        temperature = query.request.get("temperature")
        if isinstance(temperature, int | float) and temperature > self.max_temperature:
            detail = f"{temperature:g} is above {self.max_temperature:g}"
            return Reason("temperature", "skip", detail)
        return None

    def rule_of(self, intent: str | None) -> IntentRule:
        """Return the rule of an intent; one that has none follows the defaults."""
        return self.intents.get(intent or "", _DEFAULTS)

    def ttl_of(self, intent: str | None, asked_s: float | None = None) -> float:
        """Return how long an answer is kept: as asked, else by intent, else the default."""
        if asked_s is not None:
            return asked_s
        own_s = self.rule_of(intent).ttl_s
        return self.ttl_s if own_s is None else own_s

    def stale_of(self, intent: str | None, asked_s: float | None) -> float:
        """Return how long an answer is kept beyond its TTL; a time asked for is kept to."""
        may_be = asked_s is None and self.rule_of(intent).may_be_stale
        return self.stale_s if may_be else 0.0


_DEFAULTS = IntentRule()
