"""Decide whether a stored answer is right for another text; knows no cache and no threshold."""

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol

from semantic_layer.errors import VerifierFailed

BUNDLED_VERIFIER = "bundled"

Pair = tuple[str, str]


class Verifier(Protocol):
    """Gives a calibrated probability that two texts have the same right answer.

    ``fingerprint`` changes whenever scores would. One that ``asks_model`` costs a call of a model
    that is served.
    """

    fingerprint: str
    asks_model: bool

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


@dataclass(frozen=True, slots=True)
class _Job:
    pairs: tuple[Pair, ...]
    future: "Future[list[float]]" = field(default_factory=Future)


class ThreadedVerifier:
    """Scores pairs on one own thread, beside the event loop; see `Verifier`.

    Calls that wait at the same time share a batch of up to ``max_batch`` pairs.
    """

    asks_model = False

    def __init__(self, scorer: PairScorer, *, max_batch: int = 16) -> None:
        self.fingerprint = scorer.fingerprint
        self._scorer = scorer
        self._max_batch = max_batch
        self._waiting: deque[_Job] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="verifier")

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        return self._scorer.fits(text)

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer for each pair; see `Verifier.scores`."""
        job = _Job(tuple(pairs))
        try:
            self._waiting.append(job)
            self._thread.submit(self._work)
            return await asyncio.wrap_future(job.future)
        except (RuntimeError, ValueError, IndexError) as error:
            raise VerifierFailed(f"the verifier broke: {error}") from error

    async def close(self) -> None:
        """Finish what is running and end the thread."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        for job in self._waiting:
            job.future.cancel()

    def _work(self) -> None:
        """Score what waits, as much as a batch takes; there may be nothing left."""
        jobs: list[_Job] = []
        while self._waiting and sum(len(job.pairs) for job in jobs) < self._max_batch:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
        if not jobs:
            return
        try:
            scores = self._scorer.score([pair for job in jobs for pair in job.pairs])
            for job in jobs:
                job.future.set_result(scores[: len(job.pairs)])
                scores = scores[len(job.pairs) :]
        except (RuntimeError, ValueError, IndexError) as error:
            for job in jobs:
                job.future.set_exception(error)
        finally:
            for job in jobs:
                if not job.future.done():
                    job.future.set_exception(RuntimeError("its thread broke"))


def load_verifier(name: str, base: Path) -> PairScorer:
    """Load ``bundled``, over the bundled embedder in ``base``, or a cross-encoder by name.

    Raises:
        VerifierFailed: there is no such model, or it does not load.
    """
    if name == BUNDLED_VERIFIER:
        from semantic_layer.models.joint_encoder import JointEncoder  # noqa: PLC0415 - torch

        with as_file(files("semantic_layer") / "data" / "verifier.safetensors") as weights:
            return JointEncoder(base, weights)
    from semantic_layer.models.cross_encoder import LibraryCrossEncoder  # noqa: PLC0415 - torch

    return LibraryCrossEncoder(name)
