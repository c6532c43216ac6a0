"""langchain-openai as its documentation shows."""

from typing import Any

import langchain_openai
import openai
import pydantic
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from tests.clients.face import KEY, MAX_TOKENS, PARAMETERS, Call, City, OpenAIErrors


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
