"""``POST /v1/chat/completions`` in process: errors before and after the first byte."""

import pytest

from gateway.backends.base import Delta
from gateway.errors import BackendError, BackendUnavailable, ContextTooLong, UpstreamStatus
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.fakes.pipeline import FakePipeline
from tests.gateway.chat import URL, body, events, faked, joined


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ContextTooLong("24002 tokens, 8192 fit"), 400, "context_length_exceeded"),
        (BackendUnavailable("engine restarts"), 503, "backend_unavailable"),
        (RuntimeError("our bug: secret"), 500, "internal_error"),
    ],
)
async def test_error_is_a_status_when_it_comes_before_the_first_byte(
    error: Exception, status: int, code: str, stream: bool
) -> None:
    """P09: both modes answer with JSON and the right status; nothing internal leaks."""
    response = await faked(FakePipeline(error=error), stream=stream)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("application/json")
    assert response.json()["error"]["code"] == code
    assert response.headers["x-request-id"]
    assert "secret" not in response.text
    assert ("retry-after" in response.headers) == (status == 503)


async def test_upstreams_error_is_relayed_when_it_gave_one() -> None:
    """Status, body and rate-limit headers of the upstream reach the client."""
    error = UpstreamStatus(429, {"error": {"message": "slow down"}}, {"retry-after": "7"})
    response = await faked(FakePipeline(error=error))
    assert response.status_code == 429
    assert response.json() == {"error": {"message": "slow down"}}
    assert response.headers["retry-after"] == "7"


@pytest.mark.parametrize(
    ("error", "code"),
    [(BackendError("engine died"), "backend_error"), (RuntimeError("secret"), "internal_error")],
)
async def test_error_is_an_event_when_it_comes_after_the_first_byte(
    error: Exception, code: str
) -> None:
    """The stream tells the error and ends, without any finish_reason; the whole answer is a 5xx."""
    backend = FakeBackend([Delta(0, "half an ans")], error=error)
    async with MemoryGateway(backend).client() as client:
        response = await client.post(URL, json=body(stream=True))
        whole_one = await client.post(URL, json=body())
    *chunks, last = events(response)
    assert last["error"]["code"] == code
    assert "secret" not in response.text
    assert joined(chunks) == "half an ans"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert whole_one.status_code >= 500
    assert whole_one.json()["error"]["code"] == code
