"""openai as its documentation shows, synchronous and asynchronous."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import openai

from tests.clients.face import FUNCTION, KEY, MAX_TOKENS, TOOL, Call, City, OpenAIErrors, user


class OpenAIClient(OpenAIErrors):
    """openai, synchronous."""

    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def ask(self, model: str, text: str) -> str:
        answer = self._client.chat.completions.create(
            model=model, messages=user(text), temperature=0, max_tokens=MAX_TOKENS
        )
        assert answer.usage is not None
        assert answer.choices[0].finish_reason in ("stop", "length")
        return answer.choices[0].message.content or ""

    def stream(self, model: str, text: str) -> list[str]:
        with self._client.chat.completions.stream(
            model=model, messages=user(text), temperature=0, max_tokens=MAX_TOKENS
        ) as events:
            return [event.delta for event in events if event.type == "content.delta"]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(user(text))
        named: Any = {"type": "function", "function": {"name": "weather"}}
        first = self._client.chat.completions.create(
            model=model,
            messages=messages,
            tools=[TOOL],  # type: ignore[list-item]
            tool_choice=named,
            temperature=0,
        ).choices[0]
        assert first.finish_reason in ("tool_calls", "stop")
        assert first.message.tool_calls
        made = first.message.tool_calls[0]
        assert made.type == "function"
        messages += [first.message, {"role": "tool", "tool_call_id": made.id, "content": "21"}]
        second = self._client.chat.completions.create(
            model=model, messages=messages, temperature=0, max_tokens=MAX_TOKENS
        )
        call = made.function.name, json.loads(made.function.arguments)
        return call, second.choices[0].message.content or ""

    def structured(self, model: str, text: str) -> dict[str, Any]:
        parsed = self._client.chat.completions.parse(
            model=model, messages=user(text), response_format=City, temperature=0
        )
        city = parsed.choices[0].message.parsed
        assert city is not None
        return city.model_dump()

    def leave(self, model: str, text: str) -> str:
        stream = self._client.chat.completions.create(
            model=model, messages=user(text), stream=True, max_tokens=1000
        )
        with stream:
            return next(
                chunk.choices[0].delta.content
                for chunk in stream
                if chunk.choices and chunk.choices[0].delta.content
            )

    def close(self) -> None:
        self._client.close()


class AsyncOpenAIClient(OpenAIErrors):
    """openai, asynchronous, over the Responses API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _run(self, work: Callable[[openai.AsyncOpenAI], Any]) -> Any:
        async def run() -> Any:
            async with openai.AsyncOpenAI(
                base_url=f"{self._url}/v1", api_key=KEY, max_retries=0
            ) as client:
                return await work(client)

        return asyncio.run(run())

    def ask(self, model: str, text: str) -> str:
        async def work(client: openai.AsyncOpenAI) -> str:
            answer = await client.responses.create(
                model=model, input=text, temperature=0, max_output_tokens=MAX_TOKENS
            )
            assert answer.usage is not None
            return answer.output_text

        return str(self._run(work))

    def stream(self, model: str, text: str) -> list[str]:
        async def work(client: openai.AsyncOpenAI) -> list[str]:
            async with client.responses.stream(
                model=model, input=text, temperature=0, max_output_tokens=MAX_TOKENS
            ) as events:
                return [e.delta async for e in events if e.type == "response.output_text.delta"]

        return list(self._run(work))

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        async def work(client: openai.AsyncOpenAI) -> tuple[Call, str]:
            function: Any = {"type": "function", "strict": True, **FUNCTION}
            first = await client.responses.create(
                model=model,
                input=text,
                tools=[function],
                tool_choice={"type": "function", "name": "weather"},
                temperature=0,
            )
            made = first.output[0]
            assert made.type == "function_call"
            second = await client.responses.create(
                model=model,
                previous_response_id=first.id,
                input=[{"type": "function_call_output", "call_id": made.call_id, "output": "21"}],
                temperature=0,
                max_output_tokens=MAX_TOKENS,
            )
            return (made.name, json.loads(made.arguments)), second.output_text

        return self._run(work)  # type: ignore[no-any-return]

    def structured(self, model: str, text: str) -> dict[str, Any]:
        async def work(client: openai.AsyncOpenAI) -> dict[str, Any]:
            parsed = await client.responses.parse(
                model=model, input=text, text_format=City, temperature=0
            )
            assert parsed.output_parsed is not None
            return parsed.output_parsed.model_dump()

        return dict(self._run(work))

    def leave(self, model: str, text: str) -> str:
        async def work(client: openai.AsyncOpenAI) -> str:
            stream = await client.responses.create(
                model=model, input=text, stream=True, max_output_tokens=1000
            )
            async with stream:
                async for event in stream:
                    if event.type == "response.output_text.delta":
                        return event.delta
            raise AssertionError("no text")

        return str(self._run(work))

    def close(self) -> None:
        """Every call closed its own."""
