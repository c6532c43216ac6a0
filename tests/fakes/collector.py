"""An OpenTelemetry collector: takes OTLP over HTTP on a real socket and keeps the spans."""

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class Seen:
    """One span as it came; ids in hex."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[str]
    is_error: bool


class FakeCollector:
    """Answers 200, or another ``status`` if the test says so."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.bodies = b""
        self.headers: list[dict[str, str]] = []
        self.service = ""
        self.status = 200
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                fake.headers.append({key.lower(): value for key, value in self.headers.items()})
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if fake.status == 200:
                    fake.take(body)
                self.send_response(fake.status)
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def take(self, body: bytes) -> None:
        self.bodies += body
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            self.service = _plain(group.resource.attributes)["service.name"]
            for scope in group.scope_spans:
                self.spans += [_seen(span) for span in scope.spans]

    def of_trace(self, trace_id: str) -> list[Seen]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _seen(span: Any) -> Seen:
    return Seen(
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _plain(span.attributes),
        [event.name for event in span.events],
        span.status.code == 2,
    )
