"""OpenTelemetry: what a real collector gets of real requests, and what it never gets."""

import json
import secrets
import uuid
from collections.abc import Iterator

import pytest

from tests.contract.client import CHAT_MODEL, until
from tests.contract.conftest import Relay
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.collector import FakeCollector, Seen
from tests.fakes.upstream import FakeUpstream, echo, refusal

SERVER, CLIENT, INTERNAL = 2, 3, 1
QUESTION = "How do I turn on the purple oven?"
REWORDED = "How do I switch on the purple oven?"


@pytest.fixture(scope="module")
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as fake:
        yield fake


@pytest.fixture(scope="module")
def traced(
    tmp_path_factory: pytest.TempPathFactory,
    serving_models: object,
    shared_upstream: FakeUpstream,
    collector: FakeCollector,
) -> Iterator[Stack]:
    """A gateway with its local model, an upstream and a collector."""
    shared_upstream.script = echo
    toml = upstream_toml(shared_upstream.base_url, models=["stub-model", "stub-embed"]) + (
        f'[traces]\nendpoint = "{collector.url}"\nservice_name = "our-gateway"\nevery_s = 0.1\n'
        'headers = "x-token=collector-secret"\n'
    )
    folder = tmp_path_factory.mktemp("traced")
    with serving(folder, serving_models, toml=toml) as started:  # type: ignore[arg-type]
        yield started


@pytest.fixture
def caller(traced: Stack) -> Iterator[Relay]:
    made = Relay(traced.url, {"x-strata-namespace": uuid.uuid4().hex})
    yield made
    made.close()


def parent() -> tuple[str, str, dict[str, str]]:
    """Return a trace id, a span id and the header that a client of that trace sends."""
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    return trace_id, span_id, {"traceparent": f"00-{trace_id}-{span_id}-01"}


def spans(collector: FakeCollector, trace_id: str, *names: str) -> dict[str, Seen]:
    """Wait for spans of a trace by name."""

    def found() -> dict[str, Seen]:
        return {span.name: span for span in collector.of_trace(trace_id)}

    until(lambda: set(names) <= set(found()), what=f"{names} in {collector.of_trace(trace_id)}")
    return found()


def test_a_miss_is_followed_to_the_upstream_and_back_when_a_client_sends_its_trace(
    caller: Relay, collector: FakeCollector, upstream: FakeUpstream
) -> None:
    """Every stage hangs where it belongs, and the upstream gets the trace handed on."""
    trace_id, span_id, header = parent()
    answered = caller.answer(QUESTION, headers={**header, "tracestate": "shop=1"})
    names = ("POST /v1/chat/completions", "exact", "embed", "search", "chat stub-model")
    seen = spans(collector, trace_id, *names, "write back")
    request, work = seen[names[0]], seen["chat stub-model"]
    assert (request.parent_id, request.kind) == (span_id, SERVER)
    assert (work.parent_id, work.kind) == (request.span_id, CLIENT)
    for stage in ("exact", "embed", "search", "write back"):
        assert seen[stage].parent_id == request.span_id
        assert request.start <= seen[stage].start <= seen[stage].end
    assert work.events == ["upstream.answer"]
    told = request.attributes
    assert told["http.route"] == "/v1/chat/completions"
    assert told["http.request.method"] == "POST"
    assert told["http.response.status_code"] == 200
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.request.model"] == "stub-model"
    assert told["gen_ai.usage.input_tokens"] > 0
    assert told["strata.outcome"] == "miss"
    assert told["strata.intent"] == answered.headers["x-strata-intent"]
    assert told["strata.request_id"] == answered.headers["x-request-id"]
    handed_on = upstream.calls[-1].headers
    assert handed_on["traceparent"] == f"00-{trace_id}-{work.span_id}-01"
    assert handed_on["tracestate"] == "shop=1"
    assert collector.service == "our-gateway"
    assert collector.headers[-1]["x-token"] == "collector-secret"


def test_a_semantic_hit_tells_why_when_it_is_traced(
    caller: Relay, collector: FakeCollector
) -> None:
    """Entry, similarity, score and threshold are those of the response's headers."""
    caller.seed(QUESTION)
    trace_id, _, header = parent()
    hit = caller.answer(REWORDED, headers=header)
    assert hit.headers["x-strata-cache"] == "semantic"
    seen = spans(collector, trace_id, "POST /v1/chat/completions", "verify")
    told = seen["POST /v1/chat/completions"].attributes
    assert told["strata.outcome"] == "semantic"
    assert told["strata.entry"] == hit.headers["x-strata-entry"]
    for name in ("score", "similarity", "threshold"):
        assert told[f"strata.{name}"] == pytest.approx(
            float(hit.headers[f"x-strata-{name}"]), abs=1e-3
        )
    assert "chat stub-model" not in seen


def test_the_engines_phases_are_spans_when_the_local_model_answers(
    caller: Relay, collector: FakeCollector
) -> None:
    """Queue, prefill and decode lie in the generation one after the other, also of a stream."""
    trace_id, _, header = parent()
    caller.stream("Name one metal.", model=CHAT_MODEL, max_tokens=6, headers=header)
    work_name = f"chat {CHAT_MODEL}"
    seen = spans(collector, trace_id, work_name, "queue", "prefill", "decode")
    work = seen[work_name]
    assert work.kind == INTERNAL
    phases = [seen[name] for name in ("queue", "prefill", "decode")]
    assert all(phase.parent_id == work.span_id for phase in phases)
    assert phases[0].start < phases[0].end <= phases[1].end <= phases[2].end
    assert phases[1].start < phases[1].end


def test_words_and_keys_are_in_no_span_when_requests_are_traced(
    caller: Relay, collector: FakeCollector, upstream: FakeUpstream
) -> None:
    """Neither what was asked and answered nor a bearer token reaches the collector (O03)."""
    secret, trace_id = "sk-test-visible-123", parent()[0]
    header = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"}
    upstream.script = lambda call: refusal(400, {"error": {"message": "marzipan is refused"}})
    caller.chat(
        "Say marzipan to <img src=x onerror=alert(1)>",
        headers={**header, "authorization": f"Bearer {secret}"},
    )
    seen = spans(collector, trace_id, "POST /v1/chat/completions", "chat stub-model")
    assert seen["chat stub-model"].is_error
    assert seen["POST /v1/chat/completions"].attributes["http.response.status_code"] == 400
    for word in (b"marzipan", b"onerror", b"purple", secret.encode()):
        assert word not in collector.bodies


def test_embeddings_are_followed_when_an_upstream_makes_them(
    caller: Relay, collector: FakeCollector, upstream: FakeUpstream
) -> None:
    """The vectors' request hands the trace on too; what came of it stands in its span."""
    trace_id, _, header = parent()
    caller.http.post(
        "/v1/embeddings", json={"model": "stub-embed", "input": "plain"}, headers=header
    )
    seen = spans(collector, trace_id, "POST /v1/embeddings", "embeddings stub-embed")
    work = seen["embeddings stub-embed"]
    assert work.parent_id == seen["POST /v1/embeddings"].span_id
    assert upstream.calls[-1].headers["traceparent"].split("-")[2] == work.span_id


def test_probes_are_not_traced_and_the_log_names_the_trace(
    traced: Stack, caller: Relay, collector: FakeCollector
) -> None:
    """A trace that its client does not want is not sent, but its id is in the access log."""
    trace_id = secrets.token_hex(16)
    unsampled = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-00"}
    request_id = caller.answer(QUESTION, headers=unsampled).headers["x-request-id"]

    def line() -> dict[str, object]:
        rows = [json.loads(row) for row in traced.log.splitlines() if row.startswith("{")]
        return next((row for row in rows if row.get("request_id") == request_id), {})

    until(lambda: bool(line()), what="the access line")
    assert line()["trace_id"] == trace_id
    last, _, header = parent()
    caller.answer(QUESTION, headers=header)
    spans(collector, last, "POST /v1/chat/completions")
    assert collector.of_trace(trace_id) == []
    assert not any("health" in span.name for span in collector.spans)


def test_requests_are_answered_when_the_collector_is_broken(
    caller: Relay, collector: FakeCollector
) -> None:
    """Errors of the collector reach nobody; spans come again when it does."""
    collector.status = 500
    try:
        answers = [caller.answer(f"What is item {k}?") for k in range(20)]
    finally:
        collector.status = 200
    assert {answer.status_code for answer in answers} == {200}
    trace_id, _, header = parent()
    caller.answer("What is item next?", headers=header)
    spans(collector, trace_id, "POST /v1/chat/completions")


def test_nothing_is_waited_for_when_no_collector_is_there(
    start_stack: object, serving_models: object
) -> None:
    """A gateway whose collector does not exist answers, and stops in the usual time."""
    stack: Stack = start_stack(  # type: ignore[operator]
        LOCAL__MODEL="none",
        SEMANTIC__ENABLED="false",
        TRACES__ENDPOINT="http://127.0.0.1:9/v1/traces",
    )
    assert stack.client.http.get("/v1/models").status_code == 200
    stack.interrupt()
