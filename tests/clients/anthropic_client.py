"""anthropic as its documentation shows."""

from typing import Any

import anthropic

from tests.clients.face import (
    FUNCTION,
    GREEDY,
    KEY,
    MAX_TOKENS,
    PARAMETERS,
    Call,
    City,
    closed,
    user,
)


class AnthropicClient:
    """anthropic, over the Messages API."""

    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)

    def ask(self, model: str, text: str) -> str:
        answer = self._client.messages.create(
            model=model, messages=user(text), max_tokens=MAX_TOKENS, extra_body=GREEDY
        )
        assert answer.usage.output_tokens >= 1
        return "".join(block.text for block in answer.content if block.type == "text")

    def stream(self, model: str, text: str) -> list[str]:
        with self._client.messages.stream(
            model=model, messages=user(text), max_tokens=MAX_TOKENS, extra_body=GREEDY
        ) as events:
            return list(events.text_stream)

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(user(text))
        described: Any = {
            "name": "weather",
            "description": FUNCTION["description"],
            "input_schema": PARAMETERS,
        }
        first = self._client.messages.create(
            model=model,
            messages=messages,
            tools=[described],
            tool_choice={"type": "tool", "name": "weather"},
            extra_body=GREEDY,
            max_tokens=200,
        )
        assert first.stop_reason == "tool_use"
        made = next(block for block in first.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": made.id, "content": "21"}
        messages += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        second = self._client.messages.create(
            model=model, messages=messages, max_tokens=MAX_TOKENS, extra_body=GREEDY
        )
        answer = "".join(block.text for block in second.content if block.type == "text")
        return (made.name, dict(made.input)), answer  # type: ignore[call-overload]

    def structured(self, model: str, text: str) -> dict[str, Any]:
        answer = self._client.messages.create(
            model=model,
            messages=user(text),
            max_tokens=200,
            extra_body=GREEDY,
            output_config={
                "format": {"type": "json_schema", "schema": closed(City.model_json_schema())}
            },
        )
        text_of = "".join(block.text for block in answer.content if block.type == "text")
        return City.model_validate_json(text_of).model_dump()

    def error(self, model: str, text: str) -> tuple[int, str]:
        try:
            self.ask(model, text)
        except anthropic.APIStatusError as error:
            return error.status_code, error.message
        raise AssertionError("no error")

    def leave(self, model: str, text: str) -> str:
        with self._client.messages.stream(
            model=model, messages=user(text), max_tokens=1000
        ) as events:
            return next(iter(events.text_stream))

    def close(self) -> None:
        self._client.close()
