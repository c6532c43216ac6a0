"""The verifier's thread: calls that wait share a batch, each gets its own scores, none hangs."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from semantic_layer.errors import VerifierFailed
from semantic_layer.models.verifier import Pair, ThreadedVerifier


class GatedScorer:
    """Scores a pair by its second text's length; waits at a gate and notes its batches."""

    fingerprint = "gated"

    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.batches: list[int] = []
        self.error: Exception | None = None

    def fits(self, text: str) -> bool:
        return True

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        self.begun.set()
        self.gate.wait(60)
        self.batches.append(len(pairs))
        if self.error is not None:
            raise self.error
        return [float(len(stored)) for _, stored in pairs]


async def held(scorer: GatedScorer, verifier: ThreadedVerifier) -> "asyncio.Task[list[float]]":
    """Start a call and return once the thread is busy with it."""
    first = asyncio.create_task(verifier.scores([("a", "first")]))
    await asyncio.to_thread(scorer.begun.wait, 60)
    return first


async def test_calls_share_a_batch_when_they_wait() -> None:
    """What comes while the thread is busy is scored together, and told apart again."""
    scorer = GatedScorer()
    verifier = ThreadedVerifier(scorer)
    first = await held(scorer, verifier)
    others = [asyncio.create_task(verifier.scores([("a", "b" * n)] * n)) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    scorer.gate.set()
    assert await first == [5]
    assert await asyncio.gather(*others) == [[1], [2, 2], [3, 3, 3]]
    assert scorer.batches == [1, 6]
    await verifier.close()


async def test_batch_is_bounded_when_many_wait() -> None:
    """A call at the end of a long line does not make the first ones wait for it."""
    scorer = GatedScorer()
    verifier = ThreadedVerifier(scorer, max_batch=4)
    first = await held(scorer, verifier)
    others = [asyncio.create_task(verifier.scores([("a", "b")] * 2)) for _ in range(5)]
    await asyncio.sleep(0)
    scorer.gate.set()
    await asyncio.gather(first, *others)
    assert scorer.batches == [1, 4, 4, 2]
    await verifier.close()


@pytest.mark.parametrize("error", [RuntimeError("no memory"), KeyError("a bug")])
async def test_every_call_of_a_batch_is_told_when_the_model_breaks(error: Exception) -> None:
    """Named or not, an error reaches all that wait for it, and the thread goes on."""
    scorer = GatedScorer()
    scorer.gate.set()
    scorer.error = error
    verifier = ThreadedVerifier(scorer)
    for _ in range(2):
        with pytest.raises(VerifierFailed, match="broke"):
            await verifier.scores([("a", "b")])
    scorer.error = None
    assert await verifier.scores([("a", "b")]) == [1]
    await verifier.close()


async def test_nobody_waits_when_the_verifier_is_closed() -> None:
    """A call that has not begun ends with the verifier; one after it fails by name."""
    scorer = GatedScorer()
    verifier = ThreadedVerifier(scorer)
    first = await held(scorer, verifier)
    late = asyncio.create_task(verifier.scores([("a", "b")]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(verifier.close())
    await asyncio.sleep(0)
    scorer.gate.set()
    await closing
    assert await first == [5]
    await asyncio.wait([late], timeout=60)
    assert late.done()
    with pytest.raises(VerifierFailed):
        await verifier.scores([("a", "b")])


async def test_scores_go_on_when_a_caller_gives_up() -> None:
    """A cancelled call takes no place in a batch."""
    scorer = GatedScorer()
    verifier = ThreadedVerifier(scorer)
    first = await held(scorer, verifier)
    gone = asyncio.create_task(verifier.scores([("a", "b")]))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    scorer.gate.set()
    assert await first == [5]
    assert await verifier.scores([("a", "bb")]) == [2]
    assert sum(scorer.batches) == 2
    await verifier.close()
