"""A whole gateway in memory over a scripted backend: everything real but the model."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
from litestar import Litestar

from gateway.app import create_app
from gateway.auth import KeyRing
from gateway.backends.base import Backend
from gateway.backends.routing import Backends
from gateway.embeddings import Embeddings
from gateway.evidence import Evidence, EvidencePolicy
from gateway.flight import FlightGroup
from gateway.kept_responses import KeptResponses
from gateway.metrics import Metrics
from gateway.model_names import ModelNames
from gateway.parts import Parts
from gateway.pipeline import Pipeline
from gateway.quotas import Quotas
from gateway.record import RequestRecord
from gateway.setting_sections import LogSettings
from gateway.settings import Settings
from gateway.stats import TrafficStats
from gateway.write_back import WriteBack
from semantic_layer import (
    Embedder,
    MemoryCounters,
    MemoryJournal,
    MemoryRecords,
    MemoryResponseStore,
    MemoryVectorIndex,
    SemanticCache,
)
from tests.fakes.tcp import listening

QUIET = Settings(log=LogSettings(level="error", format="json"))


class MemoryGateway:
    """The parts of one gateway, its app, and a way to call it."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings = QUIET,
        *,
        embedder: Embedder | None = None,
        evidence: EvidencePolicy | None = None,
    ) -> None:
        names, backends = ModelNames(), Backends([backend])
        metrics, stats = Metrics(names), TrafficStats(names)
        names.know(backends.lists, lambda name: backends.find(name) is not None)
        self.records: list[RequestRecord] = []
        self.write_back = WriteBack(8, metrics.count_dropped)
        cache = SemanticCache(
            store=MemoryResponseStore(),
            index=MemoryVectorIndex(embedder.dim if embedder else 1),
            embedder=embedder,
            observe=metrics.observe_lookup,
            on_failure=metrics.count_store_failure,
        )
        self.flights = FlightGroup()

        def record(request: RequestRecord) -> None:
            self.records.append(request)
            metrics.record(request)
            stats.record(request)
            self.evidence.record(request)

        quotas = Quotas(MemoryCounters())
        self.evidence = Evidence(
            MemoryJournal(),
            cache=cache,
            backends=backends,
            metrics=metrics,
            policy=evidence or EvidencePolicy(),
        )
        self.parts = Parts(
            settings=settings,
            key_ring=KeyRing(settings.api_keys_file),
            pipeline=Pipeline(
                cache=cache,
                backends=backends,
                flights=self.flights,
                write_back=self.write_back,
                quotas=quotas,
                on_record=record,
                evidence=self.evidence.gatherer,
            ),
            embeddings=Embeddings(
                cache=cache,
                backends=backends,
                write_back=self.write_back,
                quotas=quotas,
                on_record=record,
            ),
            cache=cache,
            backends=backends,
            engine=None,
            metrics=metrics,
            stats=stats,
            quotas=quotas,
            responses=KeptResponses(MemoryRecords(), 60),
            evidence=self.evidence,
        )

    def app(self, **parts: Any) -> Litestar:
        """Build the app, some parts replaced."""
        return create_app(parts=replace(self.parts, **parts))

    @contextlib.asynccontextmanager
    async def client(
        self, peer: str = "127.0.0.1", **parts: Any
    ) -> AsyncIterator[httpx.AsyncClient]:
        """Call the app in process, as a client at `peer`."""
        transport = httpx.ASGITransport(
            self.app(**parts), raise_app_exceptions=False, client=(peer, 50_000)
        )
        base_url = "http://127.0.0.1:8000"
        async with (
            self._storing(),
            httpx.AsyncClient(transport=transport, base_url=base_url) as client,
        ):
            yield client

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """Serve the app on a real socket; give its URL."""
        async with self._storing(), listening(self.app()) as url:
            yield url

    @contextlib.asynccontextmanager
    async def _storing(self) -> AsyncIterator[None]:
        workers = [asyncio.create_task(work()) for work in (self.write_back.run, self.evidence.run)]
        try:
            yield
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
