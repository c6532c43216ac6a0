"""A gateway in memory that learns, a client of it, and what it has learnt."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from gateway.evidence import EvidencePolicy
from semantic_layer import Label
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.gateway import QUIET, MemoryGateway

CHAT, REQUESTS, FEEDBACK = "/v1/chat/completions", "/admin/requests", "/admin/feedback"
STORED = "How do I turn on updates?"
REWORDED = "How can I switch on updates, please?"
FORCED = {"x-strata-intent": "general"}
STRICT = {**FORCED, "x-strata-threshold": "1.0"}


class Learner:
    """A gateway, a client of it, and what it has learnt."""

    def __init__(self, answer: str = "made", **policy: Any) -> None:
        self.backend = FakeBackend(whole(answer))
        self.gateway = MemoryGateway(
            self.backend, QUIET, embedder=FakeEmbedder(), evidence=EvidencePolicy(**policy)
        )
        self.client: httpx.AsyncClient = None  # type: ignore[assignment]

    @property
    def labels(self) -> list[Label]:
        return self.gateway.evidence.labels.book.labels()

    async def store(self, answer: str, question: str = STORED) -> str:
        rows = [{"request": body(question), "text": answer, "intent": "general"}]
        response = await self.client.post("/admin/cache/entries", json=rows)
        assert response.json()["errors"] == [], response.text
        return str(response.json()["ids"][0])

    async def ask(self, text: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self.client.post(CHAT, json=body(text), headers={**FORCED, **named})
        assert response.status_code == 200, response.text
        await self.gateway.evidence.gatherer.settled()
        return response

    async def say(self, verdict: str, **about: str) -> Any:
        response = await self.client.post(FEEDBACK, json={"verdict": verdict, **about})
        assert response.status_code == 200, response.text
        return response.json()

    async def listed(self, **query: Any) -> list[dict[str, Any]]:
        response = await self.client.get(REQUESTS, params=query)
        assert response.status_code == 200, response.text
        return list(response.json()["requests"])

    async def metric(self, line: str) -> str | None:
        text = (await self.client.get("/metrics")).text
        return next((each.split()[-1] for each in text.splitlines() if each.startswith(line)), None)


def body(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "temperature": 0}


@asynccontextmanager
async def opened(**policy: Any) -> AsyncIterator[Learner]:
    """Give a learner with this policy."""
    learner = Learner(**policy)
    async with learner.gateway.client() as client:
        learner.client = client
        yield learner
