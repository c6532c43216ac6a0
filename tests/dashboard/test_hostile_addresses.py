"""Whatever stands in the address of a page, a page answers it: never a failure, never a script."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway

SCRIPT = "<script>alert(1)</script>"
PAGES = (
    "", "/thresholds", "/thresholds/factual/preview", "/thresholds/%00/preview", "/review",
    "/requests", "/requests/%FF", "/requests/a%2Fb", "/requests/x/prefix", "/cache",
    "/cache/..%2f..%2fetc%2fpasswd", "/prefixes", "/experiments", "/doctor", "/nothing", "/said",
    "/" + "a" * 3000, f"/{SCRIPT}",
)  # fmt: skip
QUERIES = (
    "", "minutes=-1", "intent=%00", f"intent={SCRIPT}", f"text={SCRIPT}&tag={SCRIPT}", "cursor=%FF",
    "limit=99999999999999999999", "within=9e99", "outcome=nope", "text=%ED%A0%80", "lang=%00",
    "threshold=NaN", "threshold=1e999", "threshold=", "a=1&a=2", "=", "%", "text=" + "x" * 5000,
)  # fmt: skip


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with MemoryGateway(FakeBackend(whole("made"))).client() as client:
        body = {"model": "m", "messages": [{"role": "user", "content": SCRIPT}]}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
        yield client


@pytest.mark.parametrize("path", PAGES)
async def test_page_answers_whatever_its_address_holds(
    client: httpx.AsyncClient, path: str
) -> None:
    """A refusal is a page that says why, and what was sent is shown as text."""
    for query in QUERIES:
        answer = await client.get(f"/dashboard{path}?{query}")
        assert answer.status_code in (200, 400, 404, 405), query
        assert answer.headers["content-type"].startswith("text/html"), query
        assert SCRIPT not in answer.text, query
