"""Both vendors' SDKs on Messages and Responses: local or relayed, the result is one."""

import asyncio
import uuid
from typing import Any

import anthropic

from tests.contract.client import CHAT_MODEL
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
