"""Python's clients behind one face, each used as its documentation shows."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import anthropic
import langchain_openai
import litellm
import llm
import openai
import pydantic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from llm.default_plugins.openai_models import Chat

KEY = "any-key"
MAX_TOKENS = 40
GREEDY = {"temperature": 0}  # what SDKs no longer name still reaches the API

Call = tuple[str, dict[str, Any]]


class City(pydantic.BaseModel):
    """A city, in few letters and digits: a small model finds no end by itself."""

    city: str = pydantic.Field(max_length=12)
    population: int = pydantic.Field(ge=0, le=99)


PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "weather", "description": "Tell the weather.", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}


class ModelClient(Protocol):
    """What every client can do with a model of a gateway."""

    def ask(self, model: str, text: str) -> str: ...

    def stream(self, model: str, text: str) -> list[str]: ...

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        """Return the call the model made, and its answer to the tool's result."""
        ...

    def structured(self, model: str, text: str) -> dict[str, Any]: ...

    def error(self, model: str, text: str) -> tuple[int, str]:
        """Return the status and message of the error that this request meets."""
        ...

    def leave(self, model: str, text: str) -> str:
        """Stop reading after the first piece of a stream; return the piece."""
        ...

    def close(self) -> None: ...


class OpenAIErrors:
    """What clients share that raise openai's errors."""

    def ask(self, model: str, text: str) -> str:
        raise NotImplementedError

    def error(self, model: str, text: str) -> tuple[int, str]:
        try:
            self.ask(model, text)
        except openai.APIStatusError as error:
            return error.status_code, error.message
        raise AssertionError("no error")


class OpenAIClient(OpenAIErrors):
    """openai, synchronous."""

    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def ask(self, model: str, text: str) -> str:
        answer = self._client.chat.completions.create(
            model=model, messages=_user(text), temperature=0, max_tokens=MAX_TOKENS
        )
        assert answer.usage is not None
        assert answer.choices[0].finish_reason in ("stop", "length")
        return answer.choices[0].message.content or ""

    def stream(self, model: str, text: str) -> list[str]:
        with self._client.chat.completions.stream(
            model=model, messages=_user(text), temperature=0, max_tokens=MAX_TOKENS
        ) as events:
            return [event.delta for event in events if event.type == "content.delta"]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(_user(text))
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
            model=model, messages=_user(text), response_format=City, temperature=0
        )
        city = parsed.choices[0].message.parsed
        assert city is not None
        return city.model_dump()

    def leave(self, model: str, text: str) -> str:
        stream = self._client.chat.completions.create(
            model=model, messages=_user(text), stream=True, max_tokens=1000
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


class AnthropicClient:
    """anthropic, over the Messages API."""

    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0)

    def ask(self, model: str, text: str) -> str:
        answer = self._client.messages.create(
            model=model, messages=_user(text), max_tokens=MAX_TOKENS, extra_body=GREEDY
        )
        assert answer.usage.output_tokens >= 1
        return "".join(block.text for block in answer.content if block.type == "text")

    def stream(self, model: str, text: str) -> list[str]:
        with self._client.messages.stream(
            model=model, messages=_user(text), max_tokens=MAX_TOKENS, extra_body=GREEDY
        ) as events:
            return list(events.text_stream)

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(_user(text))
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
            messages=_user(text),
            max_tokens=200,
            extra_body=GREEDY,
            output_config={
                "format": {"type": "json_schema", "schema": _closed(City.model_json_schema())}
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
            model=model, messages=_user(text), max_tokens=1000
        ) as events:
            return next(iter(events.text_stream))

    def close(self) -> None:
        self._client.close()


class LangChainClient(OpenAIErrors):
    """langchain-openai."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = openai.DefaultHttpxClient()

    def _model(self, model: str, **more: Any) -> langchain_openai.ChatOpenAI:
        return langchain_openai.ChatOpenAI(
            model=model,
            base_url=f"{self._url}/v1",
            api_key=pydantic.SecretStr(KEY),
            temperature=0,
            max_retries=0,
            http_client=self._http,
            **more,
        )

    def ask(self, model: str, text: str) -> str:
        answer = self._model(model, max_tokens=MAX_TOKENS).invoke(text)
        assert isinstance(answer, AIMessage)
        assert answer.usage_metadata is not None
        return str(answer.content)

    def stream(self, model: str, text: str) -> list[str]:
        chunks = self._model(model, max_tokens=MAX_TOKENS).stream(text)
        return [str(chunk.content) for chunk in chunks if chunk.content]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        @tool(args_schema=PARAMETERS)
        def weather(city: str) -> str:
            """Tell the weather."""
            return "21"

        plain = self._model(model, max_tokens=200)
        messages: list[Any] = [HumanMessage(text)]
        first = plain.bind_tools([weather], tool_choice="weather").invoke(messages)
        assert isinstance(first, AIMessage)
        made = first.tool_calls[0]
        messages += [first, ToolMessage(weather.invoke(made["args"]), tool_call_id=made["id"])]
        return (made["name"], made["args"]), str(plain.invoke(messages).content)

    def structured(self, model: str, text: str) -> dict[str, Any]:
        city = self._model(model).with_structured_output(City, method="json_schema").invoke(text)
        assert isinstance(city, City)
        return city.model_dump()

    def leave(self, model: str, text: str) -> str:
        chunks = self._model(model, max_tokens=1000).stream(text)
        piece = next(str(chunk.content) for chunk in chunks if chunk.content)
        chunks.close()  # type: ignore[attr-defined]
        return piece

    def close(self) -> None:
        self._http.close()


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
        answer = self._complete(model, _user(text), max_tokens=MAX_TOKENS)
        return answer.choices[0].message.content or ""

    def stream(self, model: str, text: str) -> list[str]:
        chunks = self._complete(model, _user(text), max_tokens=MAX_TOKENS, stream=True)
        return [c.choices[0].delta.content for c in chunks if c.choices[0].delta.content]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        messages: list[Any] = list(_user(text))
        named = {"type": "function", "function": {"name": "weather"}}
        first = self._complete(model, messages, tools=[TOOL], tool_choice=named).choices[0].message
        made = first.tool_calls[0]
        messages += [first, {"role": "tool", "tool_call_id": made.id, "content": "21"}]
        answer = self._complete(model, messages, max_tokens=MAX_TOKENS).choices[0].message.content
        return (made.function.name, json.loads(made.function.arguments)), answer

    def structured(self, model: str, text: str) -> dict[str, Any]:
        answer = self._complete(model, _user(text), response_format=City)
        return City.model_validate_json(answer.choices[0].message.content).model_dump()

    def leave(self, model: str, text: str) -> str:
        chunks = self._complete(model, _user(text), max_tokens=1000, stream=True)
        piece = next(c.choices[0].delta.content for c in chunks if c.choices[0].delta.content)
        chunks.completion_stream.close()
        return str(piece)

    def close(self) -> None:
        for kept in litellm.in_memory_llm_clients_cache.cache_dict.values():
            if isinstance(kept, openai.OpenAI):
                kept.close()
        litellm.in_memory_llm_clients_cache.flush_cache()


class LlmClient(OpenAIErrors):
    """llm with an OpenAI-compatible endpoint."""

    def __init__(self, url: str) -> None:
        self._url = url

    def _model(self, model: str) -> Any:
        return Chat(
            model,
            key=KEY,
            model_name=model,
            api_base=f"{self._url}/v1",
            supports_schema=True,
            supports_tools=True,
        )

    def ask(self, model: str, text: str) -> str:
        made = self._model(model)
        return made.prompt(text, stream=False, temperature=0, max_tokens=MAX_TOKENS).text()

    def stream(self, model: str, text: str) -> list[str]:
        made = self._model(model)
        pieces = made.prompt(text, stream=True, temperature=0, max_tokens=MAX_TOKENS)
        return [piece for piece in pieces if piece]

    def call_tool(self, model: str, text: str) -> tuple[Call, str]:
        made: list[Call] = []

        def weather(city: str) -> str:
            made.append(("weather", {"city": city}))
            return "21"

        # llm leaves the choice to the model, and a small one may just answer.
        tools = [llm.Tool("weather", "Tell the weather.", PARAMETERS, weather)]
        chain = self._model(model).chain(
            text, tools=tools, stream=False, options={"max_tokens": 80, "temperature": 0}
        )
        answer = chain.text()
        return made[0] if made else ("weather", {"city": "not called"}), answer

    def structured(self, model: str, text: str) -> dict[str, Any]:
        answer = self._model(model).prompt(text, schema=City, stream=False, temperature=0)
        return City.model_validate_json(answer.text()).model_dump()

    def leave(self, model: str, text: str) -> str:
        """Press Ctrl-C on the tool: its library keeps a connection that nobody reads."""
        with tempfile.TemporaryDirectory() as folder:
            known = {"model_id": model, "model_name": model, "api_base": f"{self._url}/v1"}
            Path(folder, "extra-openai-models.yaml").write_text(json.dumps([known]))
            with subprocess.Popen(
                [sys.executable, "-m", "llm", "-m", model, text, "-o", "max_tokens", "1000"],
                env={
                    **os.environ,
                    "LLM_USER_PATH": folder,
                    "LLM_LOAD_PLUGINS": "",
                    "OPENAI_API_KEY": KEY,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as tool:
                assert tool.stdout is not None
                piece = tool.stdout.read(1)
                tool.send_signal(signal.SIGINT)
        return piece.decode(errors="replace")

    def close(self) -> None:
        """The client of each call goes with its model."""


def _user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "additionalProperties": False}


CLIENTS: dict[str, Callable[[str], ModelClient]] = {
    "openai": OpenAIClient,
    "openai-async-responses": AsyncOpenAIClient,
    "anthropic": AnthropicClient,
    "langchain-openai": LangChainClient,
    "litellm": LiteLLMClient,
    "llm": LlmClient,
}
