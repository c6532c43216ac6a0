"""The names an upstream serves models under, and what it calls them itself. Knows no HTTP."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import msgspec

from gateway.backends.base import ModelInfo
from gateway.backends.prices import Prices

STAR = "*"
MAX_MATCHED = 1024


class Catalogue:
    """The models of one upstream.

    A name with a ``*`` stands for every name that fits; in an alias the star's part is put into
    its target. ``models`` None stands for whatever the upstream lists. ``prices`` go by name, by
    target, or by ``*`` for all others.
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        models: Sequence[str] | None,
        *,
        aliases: Mapping[str, str],
        prices: Mapping[str, Prices],
        relayed: tuple[str, ...],
    ) -> None:
        self._owner = name
        self._base_url = base_url
        self._prices = prices
        self._relayed = relayed
        named = list(models or ())
        self.learns = models is None or any(STAR in each for each in named)
        self._learns_all = models is None
        self._patterns = {each: each for each in named if STAR in each}
        self._patterns |= {alias: target for alias, target in aliases.items() if STAR in alias}
        self._named = {each: each for each in named if STAR not in each}
        self._named |= {alias: target for alias, target in aliases.items() if STAR not in alias}
        self._listed: dict[str, ModelInfo] = {}
        self._targets: dict[str, str] = {}
        self.match = lru_cache(MAX_MATCHED)(self._match)
        self.learn(())

    def models(self) -> list[ModelInfo]:
        """List every model that has a name of its own."""
        return list(self._listed.values())

    def target(self, model_id: str) -> str:
        """Return what the upstream calls a model that clients call so."""
        return self._targets.get(model_id) or self._fitted(model_id) or model_id

    def learn(self, found: Iterable[str]) -> None:
        """Take over the upstream's own list, as far as the settings let it in."""
        own = (each for each in found if self._learns_all or self._fitted(each))
        self._targets = {**{each: each for each in own}, **self._named}
        self._listed = {each: self._info(each, to) for each, to in self._targets.items()}
        self.match.cache_clear()

    def _match(self, model_id: str) -> ModelInfo | None:
        """Return the model of this name, listed or fitting a pattern."""
        if model_id in self._listed:
            return self._listed[model_id]
        target = self._fitted(model_id)
        return self._info(model_id, target) if target else None

    def _fitted(self, model_id: str) -> str | None:
        for pattern, target in self._patterns.items():
            head, _, tail = pattern.partition(STAR)
            fits = model_id.startswith(head) and model_id.endswith(tail)
            if fits and len(model_id) > len(head) + len(tail):
                star = model_id[len(head) : len(model_id) - len(tail)]
                return target.replace(STAR, star)
        return None

    def _info(self, model_id: str, target: str) -> ModelInfo:
        identity = msgspec.json.encode([self._owner, target, self._base_url])
        fingerprint = f"upstream-{blake2b(identity, digest_size=16).hexdigest()}"
        prices = (self._prices.get(name) for name in (model_id, target, STAR))
        return ModelInfo(
            model_id,
            owned_by=self._owner,
            fingerprint=fingerprint,
            prices=next((each for each in prices if each), None),
            relayed=self._relayed,
        )
