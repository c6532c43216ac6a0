"""Traces of requests for an OpenTelemetry collector, and the only file that names its library.

Spans hold outcomes and figures, never words of requests or answers, and no keys.
Source: OpenTelemetry semantic conventions 1.40, HTTP server spans and ``gen_ai`` spans.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.access_log import TRACE_ID
from gateway.record import RequestRecord
from gateway.setting_sections import TraceSettings
from gateway.traces import Job, Observe

NANO = 1_000_000_000
SERVER_ERROR = 500
CLOSE_S = 1.5
EXPORT_TIMEOUT_S = 5.0
UNTRACED = ("/health/", "/metrics")
OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/messages": "chat",
    "/v1/responses": "chat",
    "/v1/completions": "text_completion",
    "/v1/embeddings": "embeddings",
}
API_OPERATIONS = {"chat": "chat", "completions": "text_completion"}

_request: ContextVar[Span | None] = ContextVar("strata_request_span", default=None)
_work: ContextVar[Span | None] = ContextVar("strata_work_span", default=None)
_propagator = TraceContextTextMapPropagator()


class OtelTraces:
    """Sends spans to a collector over OTLP/HTTP, in batches, from a thread of their own.

    What does not fit its queue, or that no collector takes, is dropped.
    """

    def __init__(self, settings: TraceSettings) -> None:
        sampler = ParentBased(TraceIdRatioBased(settings.sample_share))
        resource = Resource.create({"service.name": settings.service_name})
        self._provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        pairs = (pair.partition("=") for pair in (settings.headers or "").split(",") if pair)
        headers = {name: value for name, _, value in pairs} or None
        exporter = OTLPSpanExporter(
            endpoint=settings.endpoint, headers=headers, timeout=EXPORT_TIMEOUT_S
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=settings.every_s * 1000)
        )
        self._tracer = self._provider.get_tracer("strata")

    def app(self, app: ASGIApp) -> ASGIApp:
        """Return the app with a span around every request but those of probes and scrapers."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != ScopeType.HTTP or scope["path"].startswith(UNTRACED):
                await app(scope, receive, send)
                return
            await self._follow(app, scope, receive, send)

        return traced

    def observe(self, otherwise: Observe) -> Observe:
        """Return what makes a span of every stage that ended, and tells on."""

        def observe(stage: str, seconds: float) -> None:
            otherwise(stage, seconds)
            self.phase(stage, seconds, 0.0)

        return observe

    def phase(self, name: str, seconds: float, ago_s: float) -> None:
        """Make a span of a phase that ended ``ago_s`` ago."""
        parent = _work.get() or _request.get()
        if parent is None or not parent.is_recording():
            return
        ended = time.time_ns() - int(ago_s * NANO)
        span = self._tracer.start_span(
            name,
            context=set_span_in_context(parent),
            start_time=ended - max(0, int(seconds * NANO)),
        )
        span.end(ended)

    @contextlib.contextmanager
    def _generation(
        self, backend: str, model: str, api: str, *, is_remote: bool
    ) -> Iterator[Mapping[str, str]]:
        operation = API_OPERATIONS.get(api, api)
        parent = _request.get()
        span = self._tracer.start_span(
            f"{operation} {model}",
            context=None if parent is None else set_span_in_context(parent),
            kind=SpanKind.CLIENT if is_remote else SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": backend,
                "gen_ai.request.model": model,
            },
        )
        before = _work.get()
        _work.set(span)
        try:
            yield _headers(span) if is_remote else {}
        except (GeneratorExit, asyncio.CancelledError):
            span.set_attribute("strata.end", "aborted")
            raise
        except Exception as error:
            _fail(span, error)
            raise
        finally:
            _work.set(before)
            span.end()

    def generating(
        self, backend: str, model: str, api: str, *, is_remote: bool
    ) -> AbstractContextManager[Mapping[str, str]]:
        """Follow one generation of the current request, or of our own."""
        return self._generation(backend, model, api, is_remote=is_remote)

    def answered(self, upstream: str, status: str) -> None:
        """Note how one try at an upstream was answered."""
        span = _work.get() or _request.get()
        if span is not None:
            attributes = {"strata.upstream": upstream, "strata.upstream.status": status}
            span.add_event("upstream.answer", attributes)

    def record(self, record: RequestRecord) -> None:
        """Note what became of the current request."""
        span = _request.get()
        if span is not None and span.is_recording():
            span.set_attributes(_attributes(record))

    def carried(self, job: Job) -> Job:
        """Return a job that is a span of the current request."""
        parent = _request.get()
        if parent is None:
            return job

        async def carried() -> None:
            with self._tracer.start_as_current_span(
                "write back", context=set_span_in_context(parent), record_exception=False
            ):
                await job()

        return carried

    async def close(self) -> None:
        """Send what waits, for a moment; a collector that is down is not waited for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await asyncio.to_thread(self._provider.shutdown)

    async def _follow(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        span = self._begin(scope)
        _request.set(span)
        scope["state"][TRACE_ID] = format(span.get_span_context().trace_id, "032x")

        async def noting_status(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.set_attribute("http.response.status_code", status)
                if status >= SERVER_ERROR:
                    span.set_attribute("error.type", str(status))
                    span.set_status(StatusCode.ERROR)
            await send(message)

        try:
            await app(scope, receive, noting_status)
        except Exception as error:
            _fail(span, error)
            raise
        finally:
            route = scope.get("path_template")
            if route is not None:
                span.update_name(f"{scope['method']} {route}")  # type: ignore[typeddict-item]
                span.set_attribute("http.route", route)
            span.end()

    def _begin(self, scope: Scope) -> Span:
        said = {name: _joined(scope, name) for name in ("traceparent", "tracestate")}
        server = scope["server"] or ("", 0)
        client = scope["client"] or ("", 0)
        return self._tracer.start_span(
            str(scope["method"]),  # type: ignore[typeddict-item]
            context=_propagator.extract({name: v for name, v in said.items() if v}),
            kind=SpanKind.SERVER,
            attributes={
                "http.request.method": str(scope["method"]),  # type: ignore[typeddict-item]
                "url.path": scope["path"],
                "url.scheme": scope["scheme"],
                "server.address": str(server[0]),
                "server.port": int(server[1] or 0),
                "client.address": str(client[0]),
            },
        )


def _attributes(record: RequestRecord) -> dict[str, Any]:
    judgement, usage = record.judgement, record.usage
    told = {
        "gen_ai.operation.name": OPERATIONS.get(record.route, "chat"),
        "gen_ai.request.model": record.model,
        "gen_ai.response.model": record.stand_in or record.model,
        "gen_ai.usage.input_tokens": usage and usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage and usage.completion_tokens,
        "strata.cached_tokens": usage and usage.cached_tokens,
        "strata.tenant": record.tenant,
        "strata.outcome": record.outcome,
        "strata.end": record.end,
        "strata.request_id": record.request_id,
        "strata.coalesced": record.coalesced,
        "strata.intent": record.intent,
        "strata.similarity": judgement.similarity,
        "strata.score": judgement.score,
        "strata.threshold": judgement.threshold,
        "strata.entry": record.entry_id,
        "strata.ttft_s": record.ttft_s,
    }
    return {name: value for name, value in told.items() if value is not None}


def _headers(span: Span) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    _propagator.inject(headers, context=set_span_in_context(span))
    return headers


def _fail(span: Span, error: Exception) -> None:
    """Mark a span by the kind of error alone: messages may quote a request."""
    span.set_attribute("error.type", type(error).__name__)
    span.set_status(StatusCode.ERROR)


def _joined(scope: Scope, name: str) -> str:
    wanted = name.encode()
    return ",".join(value.decode("latin-1") for key, value in scope["headers"] if key == wanted)
