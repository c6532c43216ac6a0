"""The OpenAPI document, tried by a generator: what it says is what the gateway does.

A real gateway with the bundled model and a scripted upstream; seeded, so that a run repeats.
"""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from gateway.api.openapi import completed
from gateway.app import create_app
from gateway.settings import Settings
from tests.contract.client import CHAT_MODEL
from tests.contract.stack import Stack, serving, upstream_toml
from tests.fakes.upstream import Answer, Call, FakeUpstream, chunk, usage_chunk

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 12
FEW_TOKENS = 3
SOUND = {
    "messages": [{"role": "user", "content": "Hi"}],
    "prompt": "Hi",
    "input": "Hi",
    "tool_choice": None,
    "tools": None,
    "top_logprobs": None,
    "stream_options": None,
    "previous_response_id": None,
}
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def count(call: Call) -> int:
    prompt = call.body.get("prompt", "")
    prompts = len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1
    return prompts * int(call.body.get("n") or 1)


def scripted(call: Call) -> Answer:
    """Answer whatever is asked in the shape it is asked for."""
    if call.path.endswith("/embeddings"):
        rows = [{"index": at, "embedding": [1.0, 0.0]} for at in range(len(call.body["input"]))]
        body = json.dumps({"data": rows, "usage": {"prompt_tokens": len(rows)}})
        return Answer([body.encode()], headers={"content-type": "application/json"})
    pieces = []
    for index in range(count(call)):
        if call.path.endswith("/chat/completions"):
            pieces += [
                chunk({"content": "said"}, index=index),
                chunk({}, index=index, finish="stop"),
            ]
        else:
            choice = {"index": index, "text": "said", "finish_reason": "stop"}
            pieces.append(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    return Answer([*pieces, usage_chunk(), b"data: [DONE]\n\n"])


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, serving_models: Path) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("openapi")
    with FakeUpstream(scripted) as upstream:
        toml = upstream_toml(upstream.base_url)
        with serving(folder, serving_models, toml=toml, LOCAL__DEFAULT_MAX_TOKENS="3") as stack:
            yield stack


def described() -> Iterator[schemathesis.APIOperation]:
    document = completed(create_app(Settings()).openapi_schema.to_schema())
    schema = schemathesis.openapi.from_dict(document)
    for result in schema.get_all_operations():
        yield result.ok()


def aimed(body: Any, number: int) -> Any:
    """Point a generated request at a model that exists, three of four at the upstream's.

    Every other one gets a sound question, so that its other fields are what is tried.
    """
    if not isinstance(body, dict):
        return body
    embeds = "input" in body and "messages" not in body and "encoding_format" in body
    local = "multilingual-e5-small" if embeds else CHAT_MODEL
    if isinstance(body.get("model"), str):
        body = {**body, "model": local if number % 4 == 0 else "stub-model"}
    if number % 2:
        body = {**body, **{name: value for name, value in SOUND.items() if name in body}}
    for name in LIMITS:
        if isinstance(body.get(name), int) and body[name] > FEW_TOKENS:
            body = {**body, name: FEW_TOKENS}
    for name in ("n", "best_of"):
        if isinstance(body.get(name), int) and body[name] > FEW_TOKENS:
            body = {**body, name: FEW_TOKENS}
    return body


@pytest.mark.parametrize("operation", list(described()), ids=lambda one: f"{one.method} {one.path}")
def test_every_answer_is_as_documented(
    gateway: Stack, operation: schemathesis.APIOperation
) -> None:
    """No 5xx, no undocumented status or content type, no body that breaks its schema."""
    numbers = itertools.count()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: schemathesis.Case) -> None:
        case.body = aimed(case.body, next(numbers))
        response = case.call(base_url=gateway.url, timeout=30)
        case.validate_response(response, checks=CHECKS)

    check()


def test_document_is_json_and_names_our_errors(gateway: Stack) -> None:
    """Served without a page, so without scripts from elsewhere; errors are OpenAI's envelope."""
    for path in ("/schema", "/schema/openapi.json"):
        response = httpx.get(gateway.url + path, trust_env=False)
        assert response.headers["content-type"] == "application/json"
        assert b"<script" not in response.content
    document = response.json()
    chat = document["paths"]["/v1/chat/completions"]["post"]["responses"]
    for status in ("400", "401", "404", "413", "415", "429", "500", "502", "503", "504"):
        [kind] = chat[status]["content"].values()
        assert kind["schema"]["$ref"].endswith("/Error")
    assert set(chat["200"]["content"]) == {"application/json", "text/event-stream"}
