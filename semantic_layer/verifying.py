"""A verifier as a decision sees it: behind its breaker, not to be asked, or asked ahead."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from semantic_layer.errors import StoreUnavailable
from semantic_layer.models.verifier import Pair


class Verify(Protocol):
    """A verifier behind its breaker."""

    fingerprint: str
    asks_model: bool

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        ...

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer per pair.

        Raises:
            StoreUnavailable: it is slow, broken, or its breaker is open.
        """
        ...


class Unasked:
    """Stands for a verifier that must not be asked now."""

    asks_model = False

    def __init__(self, verifier: Verify, why: str) -> None:
        self.fingerprint = verifier.fingerprint
        self.fits = verifier.fits
        self._why = why

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:  # noqa: ARG002 - as the others'
        """Give no score.

        Raises:
            StoreUnavailable: always.
        """
        raise StoreUnavailable(self._why)


class AskedAhead:
    """A verifier that was asked of some pairs ahead, and answers others as they come."""

    asks_model = False

    def __init__(self, verifier: Verify, pairs: Sequence[Pair]) -> None:
        self.fingerprint = verifier.fingerprint
        self.fits = verifier.fits
        self._verifier = verifier
        self._pairs = pairs
        self._answer = asyncio.ensure_future(verifier.scores(pairs))

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probabilities, those asked for ahead at most once.

        Raises:
            StoreUnavailable: as the verifier's own.
        """
        if tuple(pairs) == tuple(self._pairs):
            return await self._answer
        return await self._verifier.scores(pairs)

    def drop(self) -> None:
        """Want the answer no longer, if it is still to come."""
        self._answer.cancel()
        self._answer.add_done_callback(_forgotten)


def _forgotten(answer: "asyncio.Future[list[float]]") -> None:
    """Take note of a failure that nobody asks for."""
    if not answer.cancelled():
        answer.exception()
