"""What the settings mean for the caches and for what is learnt beside them."""

from gateway.evidence import EvidencePolicy
from gateway.intent_settings import policies_of, rules_of
from gateway.settings import Settings
from semantic_layer import CachePolicy


def cache_policy(settings: Settings) -> CachePolicy:
    """Return what is cached, for how long, and how hard is searched."""
    return CachePolicy(
        semantic=settings.semantic.enabled,
        ttl_s=settings.cache.ttl_s,
        intents=rules_of(settings.semantic.intents),
        stale_s=settings.cache.stale_while_revalidate_s,
        max_entries=settings.cache.max_entries,
        private=settings.cache.private,
        max_temperature=settings.cache.max_temperature,
        top_k=settings.semantic.top_k,
        store_deadline_s=settings.redis.timeout_s,
        index_deadline_s=settings.qdrant.timeout_s,
        embed_deadline_s=settings.embedder.timeout_s,
        verify_deadline_s=settings.semantic.verifier_timeout_s,
        rewrite_deadline_s=settings.semantic.rewriter_timeout_s,
    )


def evidence_policy(settings: Settings) -> EvidencePolicy:
    """Return how much is learnt and kept."""
    semantic, requests = settings.semantic, settings.requests
    return EvidencePolicy(
        budget=semantic.wrong_hit_budget,
        start=semantic.start,
        shadow_share=semantic.shadow_share,
        gray_share=semantic.gray_share,
        most_per_minute=semantic.max_evidence_per_minute,
        judge=semantic.evidence_judge,
        requests_kept=requests.kept,
        texts=requests.texts == "on",
        intents=policies_of(semantic.intents),
    )
