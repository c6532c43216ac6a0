"""Both vendors' SDKs behind one face, each used as a user writes it."""

import json
from abc import ABC, abstractmethod
from typing import Any

import anthropic
import openai

MAX_TOKENS = 12


class Sdk(ABC):
    """One vendor's SDK: what a user writes with it, read into plain values."""

    kind: str

    def __init__(self, url: str, model: str, space: str) -> None:
        self.model = model
        self.more = {
            "base_url": url if self.kind == "messages" else f"{url}/v1",
            "api_key": "any",
            "max_retries": 0,
            "timeout": 120,
            "default_headers": {"x-strata-namespace": space},
        }

    @abstractmethod
    def ask(self, text: str, **fields: Any) -> tuple[str, Any, str, dict[str, int]]:
        """Return the text, tool calls, how it ended and the usage of a whole answer."""

    @abstractmethod
    def stream(self, text: str, **fields: Any) -> tuple[str, tuple[str, Any, str, dict[str, int]]]:
        """Return the joined deltas, and the same of the SDK's final answer."""


class Messages(Sdk):
    kind = "messages"

    def fields(self, text: str, **fields: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": text}]
        extra = {"temperature": 0, **fields.pop("extra_body", {})}
        known = {"model": self.model, "max_tokens": MAX_TOKENS, "messages": messages}
        return {**known, "extra_body": extra, **fields}

    def ask(self, text: str, **fields: Any) -> Any:
        with anthropic.Anthropic(**self.more) as client:
            return self.read(client.messages.create(**self.fields(text, **fields)))

    def stream(self, text: str, **fields: Any) -> Any:
        with (
            anthropic.Anthropic(**self.more) as client,
            client.messages.stream(**self.fields(text, **fields)) as stream,
        ):
            return "".join(stream.text_stream), self.read(stream.get_final_message())

    async def ask_async(self, text: str) -> Any:
        async with anthropic.AsyncAnthropic(**self.more) as client:
            whole = self.read(await client.messages.create(**self.fields(text)))
            async with client.messages.stream(**self.fields(text)) as stream:
                joined = "".join([piece async for piece in stream.text_stream])
                return whole, (joined, self.read(await stream.get_final_message()))

    @staticmethod
    def read(message: Any) -> Any:
        text = "".join(block.text for block in message.content if block.type == "text")
        calls = [(b.name, b.input) for b in message.content if b.type == "tool_use"]
        usage = message.usage
        counts = {
            "input": usage.input_tokens + usage.cache_read_input_tokens,
            "output": usage.output_tokens,
        }
        return text, calls, message.stop_reason, counts


class Responses(Sdk):
    kind = "responses"

    def fields(self, text: str, **fields: Any) -> dict[str, Any]:
        return {
            "model": self.model,
            "input": text,
            "max_output_tokens": MAX_TOKENS,
            "temperature": 0,
            **fields,
        }

    def ask(self, text: str, **fields: Any) -> Any:
        with openai.OpenAI(**self.more) as client:
            return self.read(client.responses.create(**self.fields(text, **fields)))

    def stream(self, text: str, **fields: Any) -> Any:
        pieces, last = [], None
        with (
            openai.OpenAI(**self.more) as client,
            client.responses.stream(**self.fields(text, **fields)) as stream,
        ):
            for event in stream:
                last = event
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
        return "".join(pieces), self.read(last.response)  # type: ignore[union-attr]

    async def ask_async(self, text: str) -> Any:
        pieces, last = [], None
        async with openai.AsyncOpenAI(**self.more) as client:
            whole = self.read(await client.responses.create(**self.fields(text)))
            async with client.responses.stream(**self.fields(text)) as stream:
                async for event in stream:
                    last = event
                    if event.type == "response.output_text.delta":
                        pieces.append(event.delta)
        return whole, ("".join(pieces), self.read(last.response))  # type: ignore[union-attr]

    @staticmethod
    def read(response: Any) -> Any:
        calls = [
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ]
        why = response.incomplete_details.reason if response.incomplete_details else ""
        counts = {"input": response.usage.input_tokens, "output": response.usage.output_tokens}
        return response.output_text, calls, why or response.status, counts


SDKS: list[type[Any]] = [Messages, Responses]
