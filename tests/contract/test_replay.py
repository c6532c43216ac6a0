"""Replay fidelity: streamed or whole, from the model or from the cache, an answer is the same."""

import json
import uuid
from typing import Any

import pytest

from tests.contract.client import Stream, until
from tests.contract.conftest import Relay, StartStack
from tests.contract.stack import upstream_toml
from tests.fakes.upstream import DONE, Answer, FakeUpstream, chunk, event, usage

PROMPT = "Say what you are told."
FLAG = "👩‍🚀🇫🇷 e\u0301 नमस्ते "


def entry(token: str, logprob: float) -> dict[str, Any]:
    top = [{"token": token, "logprob": logprob, "bytes": list(token.encode())}]
    return {**top[0], "top_logprobs": top}


def call(index: int, **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **fields}]}


def begin(index: int, call_id: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return call(index, id=call_id, type="function", function=function)


def more(index: int, arguments: str) -> dict[str, Any]:
    return call(index, function={"arguments": arguments})


ROLE = {"role": "assistant", "content": ""}
TEXT = ("The quick brown fox " * 9 + FLAG * 9).strip()
TOKENS = [TEXT[at : at + 3] for at in range(0, len(TEXT), 3)]

SCRIPTS: dict[str, list[bytes]] = {
    "text": [chunk(ROLE), *(chunk({"content": t}) for t in TOKENS), chunk({}, finish="stop")],
    "tool call": [
        chunk(ROLE),
        chunk(begin(0, "c1", "weather")),
        *(chunk(more(0, piece)) for piece in ('{"ci', 'ty":"雪', 'の町"}')),
        chunk({}, finish="tool_calls"),
    ],
    "parallel tool calls, pieces mixed": [
        chunk({"role": "assistant", "content": "Let me look. "}),
        chunk(begin(0, "c1", "weather")),
        chunk(begin(1, "c2", "time")),
        chunk(more(1, '{"zone":')),
        chunk(more(0, '{"city":"Paris"}')),
        chunk(more(1, '"CET"}')),
        chunk(begin(2, "c3", "now")),
        chunk({}, finish="tool_calls"),
    ],
    "logprobs": [
        chunk(ROLE),
        *(
            chunk({"content": token}, logprobs={"content": [entry(token, -at / 64)]})
            for at, token in enumerate(TOKENS)
        ),
        chunk({}, finish="stop"),
    ],
    "refusal": [
        chunk({"role": "assistant", "refusal": "I cannot "}),
        chunk({"refusal": "do that."}, logprobs={"content": None, "refusal": [entry("do", -0.5)]}),
        chunk({}, finish="stop"),
    ],
    "reasoning": [
        chunk({**ROLE, "reasoning_content": "Think "}),
        chunk({"reasoning_content": "hard."}),
        chunk({"reasoning": "Also so."}),
        chunk({"content": "42"}),
        chunk({}, finish="stop"),
    ],
    "unknown fields": [
        chunk({**ROLE, "audio": {"id": "a1", "data": "QUJD", "transcript": "A"}}),
        chunk({"audio": {"data": "REVG", "transcript": "B", "expires_at": 7}}),
        chunk({"content": "See [1].", "annotations": [{"type": "url_citation", "n": 1}]}),
        chunk({"annotations": [{"type": "url_citation", "n": 2}], "odd": {"deep": [1, {"x": 2}]}}),
        chunk({}, finish="stop", stop_reason="###", content_filter_results={"hate": "safe"}),
    ],
    "several choices": [
        chunk(ROLE, index=1),
        chunk({"content": "zero "}, index=0),
        chunk({"content": "one "}, index=1),
        chunk({"content": "and more"}, index=0),
        chunk(begin(0, "c1", "f"), index=1),
        chunk({}, index=1, finish="tool_calls"),
        chunk({}, index=0, finish="stop"),
    ],
    "cut by its limit": [chunk(ROLE), chunk({"content": "to be con"}), chunk({}, finish="length")],
    "nothing": [chunk(ROLE), chunk({}, finish="stop")],
}
REQUESTS: dict[str, dict[str, Any]] = {
    "logprobs": {"logprobs": True, "top_logprobs": 1},
    "several choices": {"n": 2},
}
USAGE = {
    **usage(prompt=11, completion=7, cached=3),
    "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 5, "accepted_prediction_tokens": 0},
    "cost": 0.25,
}


def ending(**fields: Any) -> list[bytes]:
    last = {"id": "up-1", "choices": [], "usage": USAGE, **fields}
    return [event(last), DONE]


def assembled(stream: Stream) -> dict[str, Any]:
    """Put a stream together as a client does."""
    whole: dict[str, Any] = {"choices": {}}
    for part in stream.chunks:
        others = ("choices", "usage", "id", "created", "object")
        whole |= {key: value for key, value in part.items() if key not in others}
        if part.get("usage") is not None:
            whole["usage"] = part["usage"]
        for piece in part["choices"]:
            choice = whole["choices"].setdefault(piece["index"], {"message": {}, "logprobs": {}})
            grow(choice["message"], piece.pop("delta"))
            grow(choice["logprobs"], piece.pop("logprobs") or {})
            choice |= {key: value for key, value in piece.items() if value is not None}
    whole["choices"] = [whole["choices"][index] for index in sorted(whole["choices"])]
    return whole


def grow(old: dict[str, Any], new: dict[str, Any]) -> None:
    for key, value in new.items():
        match old.get(key), value:
            case list() as items, list() if key == "tool_calls":
                for made in value:
                    known = next((c for c in items if c["index"] == made["index"]), None)
                    if known is None:
                        items.append(made)
                    else:
                        grow(known, made)
            case list() as items, list():
                old[key] = items + value
            case dict() as inner, dict():
                grow(inner, value)
            case str() as text, str() if key not in {"id", "type", "name", "role"}:
                old[key] = text + value
            case _:
                if value is not None or key not in old:
                    old[key] = value


def meaning(body: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what is new in every one and without empty fields."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {k: plain(v) for k, v in value.items() if k != "index"}
            return {k: v for k, v in kept.items() if v not in (None, "", {}, [])}
        return [plain(item) for item in value] if isinstance(value, list) else value

    wanted = {k: v for k, v in body.items() if k not in {"id", "created", "object"}}
    found: dict[str, Any] = plain(wanted)
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_answer_is_the_same_when_streamed_or_whole_new_or_cached(
    relay: Relay, upstream: FakeUpstream, name: str
) -> None:
    """Whole and stream of a miss and of a hit, filled either way, are one answer."""
    extras = {"system_fingerprint": "fp_1", "service_tier": "default", "provider": {"name": "x"}}
    upstream.script = lambda _: Answer([*SCRIPTS[name], *ending(**extras)])
    fields = {**REQUESTS.get(name, {}), "max_tokens": 200}
    asked = {"stream_options": {"include_usage": True}, **fields}
    seen = []
    for fill in ("whole", "stream"):
        space = {"x-strata-namespace": uuid.uuid4().hex}
        for outcome in ("miss", "exact"):
            ways = ("whole", "stream") if outcome == "exact" else (fill,)
            for way in ways:
                if way == "whole":
                    answer = relay.answer(PROMPT, headers=space, **fields)
                    assert answer.headers["x-strata-cache"] == outcome
                    seen.append(meaning(answer.json()))
                else:
                    stream = relay.stream(PROMPT, headers=space, **asked)
                    assert stream.cache == outcome
                    seen.append(meaning(assembled(stream)))
            request = relay.body(PROMPT, **fields)
            until(lambda r=request, s=space: relay.lookup(r, s)["outcome"] == "exact")
    assert len(upstream.calls) == 2
    first = json.dumps(seen[0], sort_keys=True, ensure_ascii=False)
    for other in seen[1:]:
        assert json.dumps(other, sort_keys=True, ensure_ascii=False) == first
    assert seen[0]["usage"] == meaning({"usage": USAGE})["usage"]
    assert seen[0]["system_fingerprint"] == "fp_1"
    assert seen[0]["provider"] == {"name": "x"}


def test_refusal_is_served_to_exact_repeats_only_when_it_was_stored(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """The model's own refusal is an answer, but never the answer to a question like it."""
    upstream.script = lambda _: Answer([*SCRIPTS["refusal"], *ending()])
    first = relay.seed("What is the capital of France?").json()["choices"][0]["message"]
    assert first["refusal"] == "I cannot do that."
    assert first["content"] is None
    again = relay.answer("What is the capital of France?")
    assert again.headers["x-strata-cache"] == "exact"
    other = relay.answer("Which city is the capital of France?")
    assert other.headers["x-strata-cache"] == "miss"


def test_request_reaches_the_upstream_untouched_when_its_fields_are_unknown(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """Unknown fields, content parts and a history of reasoning and audio pass as they are."""
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "assistant",
            "content": "4",
            "reasoning_content": "2+2",
            "reasoning": "so",
            "reasoning_details": [{"type": "reasoning.text", "text": "2+2"}],
        },
        {"role": "assistant", "content": None, "audio": {"id": "a1"}},
        {"role": "function", "name": "f", "content": "17"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": "data:,x", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            ],
        },
    ]
    fields = {
        "reasoning_effort": "high",
        "modalities": ["text", "audio"],
        "prediction": {"type": "content", "content": "x"},
        "web_search_options": {"user_location": None},
        "guided_json": {"type": "object"},
        "top_k": 5,
        "verbosity": "low",
    }
    upstream.script = lambda _: Answer([*SCRIPTS["text"], *ending()])
    relay.answer(messages, **fields)
    sent = upstream.calls[-1].body
    assert sent["messages"] == messages
    assert {key: sent[key] for key in fields} == fields


def test_replay_never_cuts_a_grapheme_and_ends_words_when_it_can(
    relay: Relay, upstream: FakeUpstream
) -> None:
    """A cached text comes in several pieces; flags, families and accents stay whole."""
    upstream.script = lambda _: Answer([*SCRIPTS["text"], *ending()])
    relay.seed(PROMPT)
    pieces = [d["content"] for d in relay.stream(PROMPT).deltas if d.get("content")]
    assert "".join(pieces) == TEXT
    assert 4 < len(pieces) < len(TEXT) / 12
    assert all(piece[-1] == " " for piece in pieces[:-1])


def test_cached_stream_takes_its_time_when_a_pace_is_set(
    start_stack: StartStack, upstream: FakeUpstream
) -> None:
    """At 20 tokens a second seven tokens are not all there at once, and come word by word."""
    toml = upstream_toml(upstream.base_url)
    paced = start_stack(
        toml=toml, LOCAL__MODEL="none", SEMANTIC__ENABLED="off", CACHE__REPLAY_TOKENS_PER_S="20"
    )
    words = [chunk({"content": f"word{n} "}) for n in range(7)]
    upstream.script = lambda _: Answer([chunk(ROLE), *words, chunk({}, finish="stop"), *ending()])
    relay = Relay(paced.url)
    relay.seed(PROMPT)
    hit = relay.stream(PROMPT)
    assert hit.cache == "exact"
    assert [d["content"] for d in hit.deltas if d.get("content")] == [f"word{n} " for n in range(7)]
    seconds = relay.http.get("/admin/stats").json()["latency_s"]["exact"]["p50"]
    assert seconds > 0.1
    relay.close()
