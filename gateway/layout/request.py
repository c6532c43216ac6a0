"""A request as a model gets it: its documents written into it, its tools in one order. Pure.

This comes before the caches, so that a key always names what the model sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.errors import BadRequest
from gateway.layout.canonical import canonical_tools
from gateway.layout.chunks import Chunk
from gateway.layout.documents import documents_text

ToolOrder = Literal["as_sent", "by_name", "sorted"]
DocumentOrder = Literal["as_sent", "by_id"]
_FIELD = "strata.documents"


@dataclass(frozen=True, slots=True)
class Documented:
    """A body that holds its documents. ``question`` is the user's text without them."""

    body: dict[str, Any]
    question: str
    context: tuple[str, ...]


def order_tools(body: dict[str, Any], order: ToolOrder) -> dict[str, Any]:
    """Put a chat request's tools in canonical order; ``sorted`` sorts their arguments too.

    The answer's own schema (``response_format``) is kept: a model writes its fields in that order.
    """
    if order == "as_sent" or not body.get("tools"):
        return body
    properties: Literal["kept", "sorted"] = "sorted" if order == "sorted" else "kept"
    return {**body, "tools": canonical_tools(body["tools"], properties)}


def with_documents(
    body: dict[str, Any], documents: Sequence[Chunk], order: DocumentOrder
) -> Documented:
    """Write documents before the text of the last user message.

    Source: our replay of conversations: before the first message every new document set breaks the
    whole history; here what was said before stays cached.

    Raises:
        BadRequest: there is no user message, or two documents have one id.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise BadRequest(f"{_FIELD}: only chats carry documents", param=_FIELD)
    ids = [document.chunk_id for document in documents]
    for at, name in enumerate(ids):
        if name in ids[:at]:
            field = f"{_FIELD}[{at}].id"
            raise BadRequest(f"{field}: {name!r} is another document's id", param=field)
    users = [at for at, message in enumerate(messages) if message["role"] == "user"]
    if not users:
        raise BadRequest(f"{_FIELD}: need a user message to stand in", param=_FIELD)
    ordered = documents if order == "as_sent" else sorted(documents, key=lambda d: d.chunk_id)
    last, text = messages[users[-1]], documents_text(ordered)
    told = {**last, "content": _before(text, last.get("content"))}
    written = [*messages[: users[-1]], told, *messages[users[-1] + 1 :]]
    context = tuple(f"{name}:{digest.hex()}" for name, digest in (d.key for d in documents))
    return Documented({**body, "messages": written}, _text(last.get("content")), context)


def _before(text: str, content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": text}, *content]
    return text + (content or "")


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    return "".join(part.get("text") or "" for part in content if part.get("type") == "text")
