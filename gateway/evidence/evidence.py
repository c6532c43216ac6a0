"""All that is learnt while one gateway runs, kept beside the response path."""

from contextlib import suppress

from gateway.evidence.intents import INTENTS, IntentDesk
from gateway.evidence.tuner import Retune, Tuner
from semantic_layer import Follower, IntentPolicies, Journal, MemoryJournal, StoreUnavailable


class Evidence:
    """The policies of intents over journals that all gateways share.

    Args:
        journal: where everything is kept.
        budget: the wrong share (0..1) of intents that have none of their own.
        settings: the wishes for intents that hold where operators set none.
        retune: told thresholds and times to live when they change.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        budget: float,
        retune: Retune,
        settings: IntentPolicies | None = None,
    ) -> None:
        self._journal = journal
        self.tuner = Tuner(budget, retune, settings)
        self.intents = IntentDesk(journal, self.tuner.use_policies)
        self._follower = Follower(journal, {INTENTS: self.intents})

    @classmethod
    def in_memory(cls, *, budget: float, retune: Retune) -> "Evidence":
        """Return the evidence of this process alone."""
        return cls(MemoryJournal(), budget=budget, retune=retune)

    async def start(self) -> None:
        """Read what is known before the first request; a store that is down is asked again."""
        with suppress(StoreUnavailable):
            await self._follower.catch_up()

    async def run(self) -> None:
        """Keep up with the other gateways, for ever."""
        await self._follower.follow()

    async def close(self) -> None:
        """Close the journals."""
        await self._journal.close()
