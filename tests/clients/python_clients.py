"""Python's clients by name."""

from collections.abc import Callable

from tests.clients.anthropic_client import AnthropicClient
from tests.clients.face import ModelClient
from tests.clients.langchain_client import LangChainClient
from tests.clients.litellm_client import LiteLLMClient
from tests.clients.llm_client import LlmClient
from tests.clients.openai_clients import AsyncOpenAIClient, OpenAIClient

CLIENTS: dict[str, Callable[[str], ModelClient]] = {
    "openai": OpenAIClient,
    "openai-async-responses": AsyncOpenAIClient,
    "anthropic": AnthropicClient,
    "langchain-openai": LangChainClient,
    "litellm": LiteLLMClient,
    "llm": LlmClient,
}
