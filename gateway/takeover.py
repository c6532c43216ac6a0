"""Puts new settings in force in opened parts, whole, while requests go on."""

from collections.abc import Callable
from dataclasses import replace

from gateway.parts import Parts
from gateway.policies import cache_policy, evidence_policy
from gateway.settings import Settings
from gateway.upstreams import fallbacks_of, relayed_headers


class Takeover:
    """Changes what can be changed; ``install`` makes parts those of new requests."""

    def __init__(self, parts: Parts, install: Callable[[Parts], None]) -> None:
        self._parts = parts
        self._install = install

    async def take(self, settings: Settings) -> None:
        """Put the settings in force.

        Raises:
            KeysFileError: the keys file cannot be read; nothing has changed then.
        """
        parts = self._parts
        parts.key_ring.read(settings.api_keys_file)
        if parts.pool is not None:
            await parts.pool.use(settings)
            come = parts.pool.upstreams
            gone = list(parts.upstreams.values())
            parts.backends.exchange(gone, list(come.values()), fallbacks_of(settings))
            parts = replace(
                parts, upstreams=come, relayed_headers=relayed_headers(settings.upstreams)
            )
        parts.cache.adopt(cache_policy(settings))
        parts.evidence.adopt(evidence_policy(settings))
        parts.pipeline.replay_tokens_per_s = settings.cache.replay_tokens_per_s
        parts.responses.ttl_s = settings.cache.responses_ttl_s
        self._parts = replace(parts, settings=settings)
        self._install(self._parts)
