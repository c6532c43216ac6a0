"""What an intent means for the caches: how long an answer lives and how it may be found. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

TIME_SENSITIVE = "time_sensitive"
PERSONAL = "personal"
TRANSACTIONAL = "transactional"


@dataclass(frozen=True, slots=True)
class IntentRule:
    """How answers of one intent are kept; the defaults are those of any other answer.

    ``ttl_s`` None is the cache's own TTL. Without ``semantic`` an answer serves exact repeats
    only, or with ``in_chats`` also chats in which the records it is about were told; without
    ``cacheable`` the cache takes no part at all, and without ``may_be_stale`` no answer is served
    beyond its TTL, not even while a new one is made.
    """

    ttl_s: float | None = None
    semantic: bool = True
    in_chats: bool = False
    cacheable: bool = True
    may_be_stale: bool = True


SEED_RULES: Mapping[str, IntentRule] = MappingProxyType(
    {
        TIME_SENSITIVE: IntentRule(ttl_s=300.0, may_be_stale=False),
        PERSONAL: IntentRule(ttl_s=300.0, semantic=False, in_chats=True, may_be_stale=False),
        TRANSACTIONAL: IntentRule(ttl_s=60.0, semantic=False, may_be_stale=False),
    }
)
