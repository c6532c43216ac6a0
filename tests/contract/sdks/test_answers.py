"""Both vendors' SDKs on Messages and Responses: local or relayed, the result is one."""

import asyncio
import uuid
from typing import Any

import anthropic

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.conftest import Relay
from tests.contract.sdks.vendors import MAX_TOKENS, Messages
from tests.contract.stack import Stack
from tests.fakes.upstream import Answer, Call, FakeUpstream, split_at, streamed

UNICODE = "晚安🌙 café Ω 你好👩‍🚀"


def test_same_result_comes_whole_streamed_new_and_cached(local: Any) -> None:
    """P03: text, ending and usage of the local model are one, however they are asked for."""
    for text in ("What is the capital of France?", f"Copy this line exactly: {UNICODE}"):
        joined, final = local.stream(text)
        assert joined == final[0]
        assert local.ask(text) == final
    whole, streamed_ = asyncio.run(local.ask_async(text))
    assert whole == streamed_[1] == final
    assert streamed_[0] == joined
    assert final[3]["output"] <= MAX_TOKENS


def test_text_is_whole_when_the_upstream_cuts_it_at_any_byte(
    relayed: Any, upstream: FakeUpstream
) -> None:
    """P01: no character is lost or split, wherever the upstream's writes end."""
    pieces = streamed(["晚安🌙", "café👩‍🚀"])
    at = len(pieces[0])
    for offset in range(at, at + len(pieces[1]) + len(pieces[2]), 7):
        upstream.script = lambda _, cut=offset: Answer(split_at(pieces, cut))
        joined, final = relayed.stream(f"Say {offset}")
        assert joined == final[0] == "晚安🌙café👩‍🚀"


def test_stop_string_is_named_when_the_local_model_meets_it(stack: Stack, kind: Any) -> None:
    """Anthropic's stop_sequence tells which one it was, new and cached, whole and streamed."""
    if kind is not Messages:
        return
    sdk = Messages(stack.url, CHAT_MODEL, uuid.uuid4().hex)
    fields = sdk.fields("What is the capital of France?", stop_sequences=["zzz", "Paris"])
    with anthropic.Anthropic(**sdk.more) as client:
        for _ in range(2):
            whole = client.messages.create(**fields)
            with client.messages.stream(**fields) as stream:
                final = stream.get_final_message()
            for message in (whole, final):
                assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Paris")
                assert "Paris" not in message.content[0].text


def test_answer_goes_on_when_the_last_turn_is_the_assistants(client: Client) -> None:
    """What Messages is given as the beginning of an answer is not said again."""
    turns = [
        {"role": "user", "content": "Count from one to ten in digits."},
        {"role": "assistant", "content": "1, 2, 3, 4, 5, 6,"},
    ]
    common = {"model": CHAT_MODEL, "max_tokens": 12, "temperature": 0, "messages": turns}
    begun = client.http.post("/v1/messages", json=common).json()
    assert begun["content"][0]["text"].startswith(" 7, 8")
    chat = {**common, "continue_final_message": True, "add_generation_prompt": False}
    again = client.http.post("/v1/chat/completions", json=chat)
    assert again.headers["x-strata-cache"] == "exact"
    new_turn = client.http.post("/v1/chat/completions", json=common).json()
    assert not new_turn["choices"][0]["message"]["content"].startswith(" 7")
    chat["messages"] = turns[:1]
    refused = client.http.post("/v1/chat/completions", json=chat)
    assert (refused.status_code, refused.json()["error"]["param"]) == (
        400,
        "continue_final_message",
    )


def test_oldest_turns_are_dropped_when_truncation_is_automatic(client: Client) -> None:
    """Responses over the context: refused by default, cut at a user's turn where that is asked."""
    long = [
        {"role": role, "content": f"pebble {at} " * 700}
        for at in range(4)
        for role in ("user", "assistant")
    ]
    items = [{"role": "developer", "content": "Be short."}, *long]
    items.append({"role": "user", "content": "Say hi."})
    body = {"model": CHAT_MODEL, "input": items, "max_output_tokens": 4, "temperature": 0}
    refused = client.http.post("/v1/responses", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        400,
        "context_length_exceeded",
    )
    cut = client.http.post("/v1/responses", json={**body, "truncation": "auto"})
    assert cut.status_code == 200, cut.text
    read = cut.json()
    assert read["truncation"] == "auto"
    assert 4_000 < read["usage"]["input_tokens"] < 8_192
    short = {**body, "input": items[-1:], "truncation": "auto"}
    assert client.http.post("/v1/responses", json=short).json()["usage"]["input_tokens"] < 60


def test_tokens_are_counted_as_they_are_used(stack: Stack) -> None:
    """count_tokens says what the answer's usage will say of its input."""
    sdk = Messages(stack.url, CHAT_MODEL, uuid.uuid4().hex)
    with anthropic.Anthropic(**sdk.more) as client:
        turns: Any = [{"role": "user", "content": f"Hi {UNICODE}"}]
        count = client.messages.count_tokens(model=CHAT_MODEL, messages=turns, system="Be kind.")
        fields = sdk.fields("", messages=turns, system="Be kind.")
        usage = client.messages.create(**fields).usage
    assert count.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def relayed_call(call: Call) -> dict[str, Any]:
    return {name: value for name, value in call.body.items() if not name.startswith("stream")}


def test_upstream_gets_plain_chat(relay: Relay, upstream: FakeUpstream) -> None:
    """Nothing of the other API's own reaches an upstream that speaks chat."""
    relay.http.post(
        "/v1/messages",
        json={
            "model": "stub-model",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "S", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Hi"}],
            "metadata": {"user_id": "u"},
            "stop_sequences": ["x"],
        },
        headers={"anthropic-version": "2023-06-01", "anthropic-beta": "a,b"},
    )
    assert relayed_call(upstream.calls[0]) == {
        "model": "stub-model",
        "max_tokens": 5,
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "Hi"}],
        "user": "u",
        "stop": ["x"],
    }
