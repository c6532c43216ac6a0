"""Functions, the older tools, called by the bundled model."""

import json

import pytest

from tests.contract.client import Client


@pytest.mark.parametrize("stream", [False, True])
def test_function_is_called_when_the_older_fields_are_used(client: Client, stream: bool) -> None:
    """Clients that know functions only get a function_call whose arguments fit."""
    schema = {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}}
    schema |= {"required": ["city"], "additionalProperties": False}
    asked = {
        "functions": [{"name": "weather", "parameters": schema}],
        "function_call": {"name": "weather"},
        "max_tokens": 64,
    }
    if stream:
        chunks = client.stream("Weather in Rome?", **asked).chunks
        deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
        told = [d["function_call"] for d in deltas if "function_call" in d]
        name, arguments = told[0]["name"], "".join(t.get("arguments", "") for t in told)
        reason = next(
            c["choices"][0]["finish_reason"] for c in chunks if c["choices"][0]["finish_reason"]
        )
    else:
        choice = client.answer("Weather in Rome?", **asked).json()["choices"][0]
        assert "tool_calls" not in choice["message"]
        call, reason = choice["message"]["function_call"], choice["finish_reason"]
        name, arguments = call["name"], call["arguments"]
    assert (name, reason) == ("weather", "function_call")
    assert json.loads(arguments)["city"] in ("Rome", "Oslo")
