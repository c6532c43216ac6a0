"""Events of the upstream backend over real sockets, against a scripted server."""

import json
from typing import Any

import pytest

from gateway.backends.base import Delta, Final, Finish, TokenLogprob, Usage
from gateway.backends.upstream import UpstreamBackend
from tests.fakes.upstream import (
    DONE,
    Answer,
    FakeUpstream,
    chunk,
    event,
    split_at,
    streamed,
    usage,
    usage_chunk,
    whole,
)
from tests.gateway.upstream_calls import answer_of, events_of


async def test_text_is_whole_when_the_socket_is_flushed_at_every_byte(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """One event a character, the stream cut at each offset in turn: never a broken character."""
    pieces = streamed(list("晚安🌙café👩‍🚀"))
    length = len(b"".join(pieces))
    for offset in range(1, length):
        upstream.script = lambda call, at=offset: Answer(split_at(pieces, at))
        assert (await answer_of(backend)).text == "晚安🌙café👩‍🚀"
    upstream.script = lambda call: Answer([bytes([byte]) for byte in b"".join(pieces)])
    assert (await answer_of(backend)).text == "晚安🌙café👩‍🚀"


@pytest.mark.parametrize("text", ["🌙", "a🌙b👩‍🚀", "\ud83d", "x\ude00"])
async def test_characters_are_whole_when_deltas_cut_surrogate_pairs(
    upstream: FakeUpstream, backend: UpstreamBackend, text: str
) -> None:
    """Servers that cut UTF-16 in two are mended; what stays half becomes U+FFFD in the end."""
    units = text.encode("utf-16-le", "surrogatepass")
    halves = [
        units[i : i + 2].decode("utf-16-le", "surrogatepass") for i in range(0, len(units), 2)
    ]
    pieces = [
        b"data: " + json.dumps({"choices": [{"delta": {"content": half}}]}).encode() + b"\n\n"
        for half in halves
    ]
    upstream.script = lambda call: Answer([*pieces, chunk({}, finish="stop"), DONE])
    expected = units.decode("utf-16-le", "replace")
    assert (await answer_of(backend)).text == expected


async def test_events_follow_the_stream_when_the_upstream_streams(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Deltas in order, then one finish, then the usage; the empty role delta is no event."""
    upstream.script = lambda call: Answer(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "a"}),
            chunk({"content": "b"}, finish="length"),
            usage_chunk(7, 2, cached=4),
            DONE,
        ]
    )
    assert await events_of(backend) == [
        Delta(0, "a"),
        Delta(0, "b"),
        Finish(0, "length"),
        Final(Usage(7, 2, 4)),
    ]


async def test_last_usage_counts_when_every_chunk_carries_one(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Running totals are not added up, and details may be null."""
    running = {"choices": [{"delta": {"content": "a"}}], "usage": usage(5, 1)}
    last = {"choices": [], "usage": {**usage(5, 2), "prompt_tokens_details": None}}
    upstream.script = lambda call: Answer(
        [event(running), event(running), chunk({}, finish="stop"), event(last), DONE]
    )
    assert (await answer_of(backend)).usage == Usage(5, 2, 0)


async def test_events_are_the_same_when_the_upstream_answers_whole(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """An upstream that ignores ``stream`` is understood."""
    upstream.script = lambda call: whole("你好🌙")
    assert await events_of(backend) == [
        Delta(0, "你好🌙"),
        Finish(0, "stop"),
        Final(Usage(5, 3, 0)),
    ]


async def test_tool_calls_are_put_together_when_they_come_in_deltas(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Arguments of several calls grow side by side, and equal those of a whole answer."""

    def call_delta(index: int, **fields: Any) -> bytes:
        return chunk({"tool_calls": [{"index": index, **fields}]})

    upstream.script = lambda call: Answer(
        [
            call_delta(0, id="c0", type="function", function={"name": "f", "arguments": ""}),
            call_delta(0, function={"arguments": '{"x":'}),
            call_delta(1, id="c1", type="function", function={"name": "g", "arguments": "{}"}),
            call_delta(0, function={"arguments": " 1}"}),
            chunk({}, finish="tool_calls"),
            DONE,
        ]
    )
    [choice] = (await answer_of(backend)).choices
    assert choice.tool_calls == [
        {
            "index": 0,
            "id": "c0",
            "type": "function",
            "function": {"name": "f", "arguments": '{"x": 1}'},
        },
        {"index": 1, "id": "c1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
    calls = [{k: v for k, v in made.items() if k != "index"} for made in choice.tool_calls]
    upstream.script = lambda call: whole("", finish="tool_calls", tool_calls=calls)
    assert (await answer_of(backend)).choices == [choice]


async def test_refusal_and_unknown_fields_travel_on_when_deltas_carry_them(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """What we do not read is relayed in ``extra``."""
    upstream.script = lambda call: Answer(
        [
            chunk({"role": "assistant", "reasoning_content": "hm"}),
            chunk({"refusal": "No."}),
            chunk({}, finish="stop"),
            DONE,
        ]
    )
    assert (await events_of(backend))[:2] == [
        Delta(0, extra={"reasoning_content": "hm"}),
        Delta(0, refusal="No."),
    ]


async def test_logprobs_are_finite_when_the_upstream_sends_them(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Entries keep their bytes and alternatives; minus infinity becomes OpenAI's -9999."""
    entry = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": None}
    worst = {"token": "b", "logprob": float("-inf"), "bytes": None}
    upstream.script = lambda call: Answer(
        [
            chunk({"content": "a"}, logprobs={"content": [{**entry, "top_logprobs": [worst]}]}),
            chunk({"content": "a"}, logprobs={"content": [entry]}),
            chunk({}, finish="stop", logprobs=None),
            DONE,
        ]
    )
    [choice] = (await answer_of(backend, logprobs=True)).choices
    first, second = choice.logprobs or []
    assert [top.logprob for top in first.top_logprobs] == [-9999.0]
    assert second == TokenLogprob("a", -0.5, [97], [])


async def test_every_choice_finishes_once_when_several_are_asked_for(
    upstream: FakeUpstream, backend: UpstreamBackend
) -> None:
    """Choices may be mixed and a finish may be repeated."""
    upstream.script = lambda call: Answer(
        [
            chunk({"content": "b"}, index=1),
            chunk({"content": "a"}),
            chunk({}, index=1, finish="stop"),
            chunk({}, index=1, finish="stop"),
            chunk({"content": "a"}, finish=""),
            chunk({}, finish="length"),
            DONE,
        ]
    )
    answer = await answer_of(backend, n=2)
    assert [(choice.text, choice.finish_reason) for choice in answer.choices] == [
        ("aa", "length"),
        ("b", "stop"),
    ]
