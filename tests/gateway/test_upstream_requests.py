"""What an upstream is sent."""

import httpx

from gateway.backends.upstream import UpstreamBackend
from tests.fakes.upstream import Answer, Call, FakeUpstream, whole
from tests.gateway.upstream_calls import MESSAGES, Backends, events_of


async def test_body_passes_untouched_but_for_the_stream_fields(
    upstream: FakeUpstream, backends: Backends
) -> None:
    """Unknown fields reach the upstream; stream and usage are always asked for."""
    backend = backends(upstream.base_url, api_key="sk-secret")
    sent = {"temperature": 0, "x_unknown": {"a": [1, None]}, "seed": 7, "stream": False}
    await events_of(backend, **sent, stream_options={"x": 1})
    [call] = upstream.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == "Bearer sk-secret"
    assert call.headers["x-request-id"] == "req-1"
    assert call.body == {
        "model": "stub-model",
        "messages": MESSAGES,
        **sent,
        "stream": True,
        "stream_options": {"x": 1, "include_usage": True},
    }


async def test_no_key_is_sent_when_none_is_set(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """An upstream without a key gets no authorization header."""
    await events_of(backend)
    assert "authorization" not in upstream.calls[0].headers


def test_fake_call_is_recorded_with_its_body(upstream: FakeUpstream) -> None:
    """The scripted server itself answers a plain client."""
    seen: list[Call] = []

    def script(call: Call) -> Answer:
        seen.append(call)
        return whole("ok")

    upstream.script = script
    reply = httpx.post(f"{upstream.base_url}/chat/completions", json={"messages": MESSAGES})
    assert reply.json()["choices"][0]["message"]["content"] == "ok"
    assert seen == upstream.calls
