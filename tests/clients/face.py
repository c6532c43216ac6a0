"""The one face of all clients, and what they have in common."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import openai
import pydantic

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


class OpenAIErrors(ABC):
    """What clients share that raise openai's errors."""

    @abstractmethod
    def ask(self, model: str, text: str) -> str: ...

    def error(self, model: str, text: str) -> tuple[int, str]:
        try:
            self.ask(model, text)
        except openai.APIStatusError as error:
            return error.status_code, error.message
        raise AssertionError("no error")


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "additionalProperties": False}
