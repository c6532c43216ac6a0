"""An upstream's embedding model as the semantic layer's: batches, width, outages."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from gateway.backends.base import ModelInfo
from gateway.backends.embeddings import EmbedWork
from gateway.backends.upstream import Retries, UpstreamBackend, UpstreamEmbedder
from gateway.errors import BackendError, UpstreamStatus
from semantic_layer import EmbedderFailed, Scorer, TextTooLong
from tests.fakes.upstream import Answer, Call, FakeUpstream, Gate, refusal, vectors

DIM = 8
MODEL = ModelInfo("e", "up", "")
FAULT = {"error": {"message": "no vectors here", "type": "x", "param": None, "code": None}}


def row_of(text: str) -> list[float]:
    """Return a vector of a text: equal texts have equal ones, of some length."""
    dice = np.random.default_rng(list(text.encode()))
    return [float(x) for x in dice.normal(size=DIM) * 3]


def embed(call: Call) -> Answer:
    return vectors([row_of(text) for text in call.body["input"]])


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream(embed) as fake:
        yield fake


@pytest.fixture
async def backend(upstream: FakeUpstream) -> AsyncIterator[UpstreamBackend]:
    opened = UpstreamBackend("up", upstream.base_url, ["e"], retries=Retries(0))
    yield opened
    await opened.close()


async def embedder_of(
    backend: UpstreamBackend, *, prompt: str = "", window: int = 512
) -> UpstreamEmbedder:
    return await UpstreamEmbedder.open(backend, MODEL, prompt=prompt, window=window)


def work(*inputs: Any, **fields: Any) -> EmbedWork:
    return EmbedWork("r", "e", inputs, [f"input[{at}]" for at in range(len(inputs))], fields)


async def test_width_is_learnt_and_rows_are_unit_when_opened(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """One probe at the start; every row has length one and points where the upstream said."""
    embedder = await embedder_of(backend, prompt="query: ")
    rows = await embedder.embed(["a", "b", "a"])
    assert (embedder.dim, rows.shape, rows.dtype) == (DIM, (3, DIM), np.float32)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    wanted = np.array(row_of("query: a"))
    assert float(rows[0] @ wanted) == pytest.approx(float(np.linalg.norm(wanted)), rel=1e-5)
    assert (rows[0] == rows[2]).all()
    assert upstream.calls[-1].body["input"] == ["query: a", "query: b"]
    assert (await embedder.embed([])).shape == (0, DIM)
    assert not embedder.knows_word("a")


async def test_texts_share_requests_when_they_are_asked_at_once(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Few requests for many look-ups, none for what was asked before."""
    embedder = await embedder_of(backend)
    upstream.calls.clear()
    texts = [f"text {at}" for at in range(300)]
    rows = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    assert len(upstream.calls) == 5
    assert all(len(call.body["input"]) <= 64 for call in upstream.calls)
    again = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    assert len(upstream.calls) == 5
    assert all((one == other).all() for one, other in zip(rows, again, strict=True))


async def test_same_text_is_asked_once_when_several_wait_for_it(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """One that gives up does not take it from the others."""
    embedder = await embedder_of(backend)
    gate = Gate()
    upstream.calls.clear()
    upstream.script = lambda call: Answer([gate, *embed(call).pieces], headers=embed(call).headers)
    waiting = [asyncio.create_task(embedder.embed(["same"])) for _ in range(3)]
    assert await asyncio.to_thread(gate.reached.wait, 5)
    waiting[0].cancel()
    gate.open()
    rows = await asyncio.gather(*waiting[1:])
    assert (rows[0] == rows[1]).all()
    assert len(upstream.calls) == 1


async def test_fingerprint_changes_when_vectors_may(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Name, model, prompt and width: entries of one embedder never meet another's."""
    plain = await embedder_of(backend)
    assert plain.fingerprint == (await embedder_of(backend)).fingerprint
    prompted = await embedder_of(backend, prompt="query: ")
    upstream.script = lambda call: vectors([[1.0, 0.0]])
    narrow = await embedder_of(backend)
    assert len({each.fingerprint for each in (plain, prompted, narrow)}) == 3


async def test_scores_are_careful_when_nothing_is_known_of_the_cosines(
    backend: UpstreamBackend,
) -> None:
    """The scorer fitted for the bundled model is not used for another one."""
    scorer = await Scorer.matching(await embedder_of(backend))
    assert scorer == Scorer.conservative()


@pytest.mark.parametrize(
    "answer",
    [
        refusal(404, FAULT),
        refusal(500, FAULT),
        Answer([b"<html>"], headers={"content-type": "text/html"}),
        vectors([]),
        vectors([[]]),
        vectors([[1.0], [2.0]]),
    ],
)
async def test_start_fails_with_one_clear_line_when_no_vector_comes(
    upstream: FakeUpstream, backend: UpstreamBackend, answer: Answer
) -> None:
    """It names the upstream and the model."""
    upstream.script = lambda call: answer
    with pytest.raises(EmbedderFailed, match="upstream up gives no vector of e"):
        await embedder_of(backend)


async def test_lookup_fails_by_name_when_the_upstream_is_away(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """The named error that the cache takes as a miss; back is back."""
    embedder = await embedder_of(backend)
    for answer in (refusal(503, FAULT), Answer([], ending="cut"), vectors([[1.0, 2.0]])):
        upstream.script = lambda call, answer=answer: answer
        with pytest.raises(EmbedderFailed):
            await embedder.embed(["a"])
    upstream.script = embed
    assert (await embedder.embed(["a"])).shape == (1, DIM)


async def test_long_text_is_refused_unsent_when_it_may_be_cut(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Many engines cut in silence; a cut text must never be embedded."""
    embedder = await embedder_of(backend, window=10)
    num_calls = len(upstream.calls)
    with pytest.raises(TextTooLong):
        await embedder.embed(["x" * 40])
    assert len(upstream.calls) == num_calls


async def test_others_are_embedded_when_one_text_of_a_batch_is_refused(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """The upstream's 400 is for the one that is too long."""

    def choosy(call: Call) -> Answer:
        return refusal(400, FAULT) if "long" in call.body["input"] else embed(call)

    embedder = await embedder_of(backend)
    upstream.script = choosy
    asked = [embedder.embed([text]) for text in ("a", "long", "b")]
    a, long, b = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(long, TextTooLong)
    assert not isinstance(a, BaseException)
    assert not isinstance(b, BaseException)


async def test_waiting_lookups_end_when_the_embedder_is_closed(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Nobody waits for ever."""
    embedder = await embedder_of(backend)
    gate = Gate()
    upstream.script = lambda call: Answer([gate])
    waiting = asyncio.create_task(embedder.embed(["a"]))
    assert await asyncio.to_thread(gate.reached.wait, 5)
    await embedder.close()
    with pytest.raises(EmbedderFailed):
        await waiting
    gate.open()


async def test_vectors_are_in_order_when_the_upstream_mixes_them(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """By index; numbers and base64 alike; the tokens add up."""
    row = base64.b64encode(np.array([3.0, 4.0], "<f4").tobytes()).decode()
    body = {
        "data": [{"index": 1, "embedding": row}, {"index": 0, "embedding": [1.0, 2.0]}],
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }
    upstream.script = lambda call: Answer(
        [json.dumps(body).encode()], headers={"content-type": "application/json"}
    )
    found = await backend.embed(work("a", "b", dimensions=2, x_new=1))
    assert [list(np.frombuffer(each.vector, "<f4")) for each in found] == [[1, 2], [3, 4]]
    assert sum(each.num_tokens for each in found) == 7
    assert upstream.calls[-1].body == {
        "model": "e",
        "input": ["a", "b"],
        "encoding_format": "float",
        "dimensions": 2,
        "x_new": 1,
    }


@pytest.mark.parametrize(
    "answer",
    [
        vectors([[1.0], [1.0, 2.0]]),
        vectors([[1.0]]),
        vectors([[1.0]] * 3),
        vectors(["%%%", "%%%"]),
        vectors(["AAA=", "AAA="]),
        Answer([b'{"data": 3}'], headers={"content-type": "application/json"}),
        Answer(
            [b'{"data": [{"embedding": [1e999]}]}'], headers={"content-type": "application/json"}
        ),
        Answer([b"\xff"], headers={"content-type": "application/json"}),
    ],
)
async def test_answer_is_an_upstream_fault_when_it_is_no_list_of_vectors(
    upstream: FakeUpstream, backend: UpstreamBackend, answer: Answer
) -> None:
    """Too few, too many, of two widths, or no numbers."""
    upstream.script = lambda call: answer
    with pytest.raises(BackendError) as caught:
        await backend.embed(work("a", "b"))
    assert type(caught.value) is BackendError


async def test_refusal_is_relayed_when_the_upstream_refuses_an_input(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Status and body as given."""
    upstream.script = lambda call: refusal(400, FAULT)
    with pytest.raises(UpstreamStatus) as caught:
        await backend.embed(work("a"))
    assert (caught.value.status, caught.value.envelope()) == (400, FAULT)
