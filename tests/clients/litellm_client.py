"""litellm as its documentation shows."""

import json
from typing import Any

import litellm
import openai

from tests.clients.face import KEY, MAX_TOKENS, TOOL, Call, City, OpenAIErrors, user


class LiteLLMClient(OpenAIErrors):
    """litellm as a client."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _complete(self, model: str, messages: list[Any], **more: Any) -> Any:
        return litellm.completion(
            model=f"openai/{model}",
            api_base=f"{self._url}/v1",
            api_key=KEY,
            messages=messages,
            temperature=0,
            max_retries=0,
            **more,
        )

    def ask(self, model: str, text: str) -> str:
        answer = self._complete(model, user(text), max_tokens=MAX_TOKENS)
        return answer.choices[0].message.content or ""

    def stream(self, model: str, text: str) -> list[str]:
        chunks = self._complete(model, user(text), max_tokens=MAX_TOKENS, stream=True)
        return [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(user(text))
        named = {"type": "function", "function": {"name": "weather"}}
        first = self._complete(model, messages, tools=[TOOL], tool_choice=named).choices[0].message
        made = first.tool_calls[0]
        messages += [first, {"role": "tool", "tool_call_id": made.id, "content": "21"}]
        answer = self._complete(model, messages, max_tokens=MAX_TOKENS).choices[0].message.content
        return (made.function.name, json.loads(made.function.arguments)), answer

    def structured(self, model: str, text: str) -> dict[str, Any]:
        answer = self._complete(model, user(text), response_format=City)
        return City.model_validate_json(answer.choices[0].message.content).model_dump()

    def leave(self, model: str, text: str) -> str:
        chunks = self._complete(model, user(text), max_tokens=1000, stream=True)
        piece = next(c.choices[0].delta.content for c in chunks if c.choices[0].delta.content)
        chunks.completion_stream.close()
        return str(piece)

    def close(self) -> None:
        for kept in litellm.in_memory_llm_clients_cache.cache_dict.values():
            if isinstance(kept, openai.OpenAI):
                kept.close()
        litellm.in_memory_llm_clients_cache.flush_cache()
