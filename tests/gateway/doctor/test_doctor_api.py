"""The doctor's route over a gateway in memory."""

import httpx
import pytest

from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway

SHAPE = {"check", "severity", "title", "evidence", "mend", "said"}


@pytest.fixture
def gateway() -> MemoryGateway:
    return MemoryGateway(FakeBackend(whole("made")))


async def test_every_finding_has_its_evidence_when_a_gateway_is_examined(
    gateway: MemoryGateway,
) -> None:
    """Worst first; what needs mending says how, what is well says what was looked at."""
    async with gateway.client() as client:
        report = (await client.get("/admin/doctor")).json()
    findings = report["findings"]
    assert report["checked_at"] > 0
    assert findings
    order = ["error", "warning", "notice", "ok"]
    ranks = [order.index(finding["severity"]) for finding in findings]
    assert ranks == sorted(ranks)
    for finding in findings:
        assert set(finding) == SHAPE
        assert set(finding["said"]) == {"title", "evidence", "mend"}
        assert set(finding["said"]["title"]) == {"text", "values"}
        assert finding["title"]
        assert finding["evidence"]
        assert bool(finding["mend"]) == (finding["severity"] != "ok")


async def test_unknown_parameter_is_named_when_it_is_asked_with_one(
    client: httpx.AsyncClient,
) -> None:
    """As on every admin route."""
    response = await client.get("/admin/doctor", params={"quick": "1"})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "quick"
