"""Decide whether a stored answer is right for another text; knows no cache and no threshold."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

from semantic_layer.errors import VerifierFailed

BUNDLED = "bundled"

Pair = tuple[str, str]


class Verifier(Protocol):
    """Gives a calibrated probability that two texts have the same right answer.

    ``fingerprint`` changes whenever scores would. ``most_tokens`` bounds each text, as
    `fits` tells.
    """

    fingerprint: str

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole; thread-safe and cheap."""
        ...

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability (0..1) of the same answer for each (asked, stored) pair.

        Raises:
            VerifierFailed: the model broke or cannot be asked.
        """
        ...

    async def close(self) -> None:
        """Stop working; idempotent."""
        ...


class PairScorer(Protocol):
    """A loaded model that scores pairs, called from one thread at a time."""

    fingerprint: str

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole; thread-safe."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer for each pair."""
        ...


class ThreadedVerifier:
    """Scores pairs on one own thread, beside the event loop; see `Verifier`."""

    def __init__(self, scorer: PairScorer) -> None:
        self.fingerprint = scorer.fingerprint
        self._scorer = scorer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="verifier")

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        return self._scorer.fits(text)

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer for each pair; see `Verifier.scores`."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._scorer.score, pairs)
        except (RuntimeError, ValueError, IndexError) as error:
            raise VerifierFailed(f"the verifier broke: {error}") from error

    async def close(self) -> None:
        """Finish what is running and end the thread."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)


def load_verifier(name: str, base: Path) -> PairScorer:
    """Load ``bundled``, over the bundled embedder in ``base``, or a cross-encoder by name.

    Raises:
        VerifierFailed: there is no such model, or it does not load.
    """
    if name == BUNDLED:
        from semantic_layer.joint_encoder import JointEncoder  # noqa: PLC0415 - torch

        with as_file(files("semantic_layer") / "data" / "verifier.safetensors") as weights:
            return JointEncoder(base, weights)
    from semantic_layer.cross_encoder import LibraryCrossEncoder  # noqa: PLC0415 - torch

    return LibraryCrossEncoder(name)
