"""What one API stored serves the others."""

import uuid
from collections.abc import Callable
from typing import Any

from tests.contract.client import CHAT_MODEL, Client
from tests.contract.stack import Stack
from tests.fakes.upstream import Answer, FakeUpstream, chunk, streamed


def outcome(client: Client, url: str, body: dict[str, Any], space: str = "n") -> str:
    response = client.http.post(url, json=body, headers={"x-strata-namespace": space})
    assert response.status_code == 200, response.text
    return str(response.headers["x-strata-cache"])


def test_answers_go_to_the_cache_and_come_from_it_across_apis(
    stack: Stack, client: Client, space: dict[str, str]
) -> None:
    """What one API stored serves the same question in the others; other limits do not."""
    name = space["x-strata-namespace"]
    text, common = "Name the largest planet.", {"model": CHAT_MODEL, "temperature": 0}
    turns = [{"role": "user", "content": text}]
    chat = {**common, "messages": turns, "max_tokens": 6}
    messages = {**common, "messages": turns, "max_tokens": 6}
    responses = {**common, "input": text, "max_output_tokens": 6}
    assert outcome(client, "/v1/messages", messages, name) == "miss"
    assert outcome(client, "/v1/chat/completions", chat, name) == "exact"
    assert outcome(client, "/v1/responses", responses, name) == "exact"
    assert outcome(client, "/v1/responses", {**responses, "max_output_tokens": 7}, name) == "miss"
    assert outcome(client, "/v1/messages", {**messages, "top_k": 1}, name) == "miss"


def test_other_words_for_one_question_hit_across_apis(
    client: Client, space: dict[str, str]
) -> None:
    """The semantic layer knows no API either."""
    common = {"model": CHAT_MODEL, "temperature": 0}
    asked = {"role": "user", "content": "What is the capital of France?"}
    body = {**common, "messages": [asked], "max_tokens": 32}
    name = space["x-strata-namespace"]
    assert outcome(client, "/v1/messages", body, name) == "miss"
    other = {**common, "input": "Which city is the capital of France?", "max_output_tokens": 32}
    assert outcome(client, "/v1/responses", other, name) == "semantic"


def test_reasoning_is_told_and_comes_back_from_the_cache(
    relay_stack: Stack, upstream: FakeUpstream, clients: Callable[..., Client]
) -> None:
    """An upstream's reasoning is a thinking block and a reasoning item, before the text."""
    thoughts = [chunk({"reasoning_content": piece}) for piece in ("Hm, ", "yes.")]
    upstream.script = lambda _: Answer([*thoughts, *streamed(["Yes."])])
    space = uuid.uuid4().hex
    caller = clients(relay_stack, x_strata_namespace=space)
    body: dict[str, Any] = {"model": "stub-model", "max_tokens": 9}
    body["messages"] = [{"role": "user", "content": "Is it?"}]
    asked = {"model": "stub-model", "max_output_tokens": 9, "input": "Is it?"}
    for outcome_ in ("miss", "exact"):
        response = caller.http.post("/v1/messages", json=body)
        assert response.headers["x-strata-cache"] == outcome_
        assert response.json()["content"] == [
            {"type": "thinking", "thinking": "Hm, yes.", "signature": ""},
            {"type": "text", "text": "Yes."},
        ]
    output = caller.http.post("/v1/responses", json=asked).json()["output"]
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "Hm, yes."}]
    assert len(upstream.calls) == 1


def test_conversation_goes_on_by_its_id_after_a_restart(
    start_stack: Callable[..., Stack], clients: Callable[..., Client]
) -> None:
    """Kept responses outlive the process, and the chain hits what the whole history stored."""
    with FakeUpstream() as fake:
        toml = (
            f'[[upstreams]]\nname = "stub"\nbase_url = "{fake.base_url}"\nmodels = ["stub-model"]\n'
        )
        stack = start_stack(toml=toml, LOCAL__MODEL="none", SEMANTIC__ENABLED="false")
        caller = clients(stack, x_strata_namespace="n")
        one = caller.http.post("/v1/responses", json={"model": "stub-model", "input": "One"})
        stack.restart()
        asked = {"model": "stub-model", "input": "Two", "previous_response_id": one.json()["id"]}
        two = caller.http.post("/v1/responses", json=asked)
        assert two.json()["output"][0]["content"][0]["text"] == "ECHO:Two"
        turns = [
            {"role": "user", "content": "One"},
            {"role": "assistant", "content": "ECHO:One"},
            {"role": "user", "content": "Two"},
        ]
        assert fake.calls[-1].body["messages"] == turns
        chat = {"model": "stub-model", "messages": turns}
        assert outcome(caller, "/v1/chat/completions", chat) == "exact"
