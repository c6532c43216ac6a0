"""Prompts laid out so that they share their prefix: for a client's own code, without a server."""

from gateway.backends.tokenizer import Tokenizer
from gateway.layout.builder import Built, PromptBuilder
from gateway.layout.canonical import (
    canonical_json,
    canonical_result,
    canonical_tool,
    canonical_tools,
)
from gateway.layout.chat import Break, ChainBroken, ChatManager
from gateway.layout.chunks import Arrangement, By, Chunk, ChunkOrder
from gateway.layout.documents import documents_text
from gateway.layout.kv_mirror import Estimate

__all__ = [
    "Arrangement",
    "Break",
    "Built",
    "By",
    "ChainBroken",
    "ChatManager",
    "Chunk",
    "ChunkOrder",
    "Estimate",
    "PromptBuilder",
    "Tokenizer",
    "canonical_json",
    "canonical_result",
    "canonical_tool",
    "canonical_tools",
    "documents_text",
]
