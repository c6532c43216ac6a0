"""``/v1/models`` in process."""

import httpx
import pytest

from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/m", "/v1/models/none"])
async def test_models_have_no_body_when_only_the_head_is_asked(path: str) -> None:
    """HEAD tells what GET would: status, type and length (RFC 9110, 9.3.2)."""
    async with (
        MemoryGateway(FakeBackend(whole("x"))).listening() as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        whole_answer, head = await client.get(path), await client.head(path)
        assert (await client.get(path)).status_code == whole_answer.status_code
    assert head.status_code == whole_answer.status_code
    assert head.content == b""
    for name in ("content-type", "content-length"):
        assert head.headers[name] == whole_answer.headers[name]
