"""What of a conversation may vary for a semantic hit: the text of the last user message.

Pure. Everything before it, and every other field of the request, must be equal (the scope).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from semantic_layer.request import CacheControl, CacheQuery

PLACEHOLDER = "\0text"


@dataclass(frozen=True, slots=True)
class Turn:
    """The part that varies (``text``) and the messages with that part taken out (``frame``)."""

    text: str
    frame: list[Any]


def split(query: CacheQuery, control: CacheControl) -> Turn | str:
    """Take the last user message's text out of a conversation, or say why that can't be done."""
    messages = query.request.get("messages")
    if query.api not in {"chat", "messages"} or not isinstance(messages, list) or not messages:
        return f"no conversation in a {query.api} request"
    last = messages[-1]
    if not isinstance(last, Mapping) or last.get("role") != "user":
        return "the last message is not the user's"
    texts, others = _parts(last.get("content"))
    if control.query_text is None and others:
        return "the last message is not text only"
    text = control.query_text if control.query_text is not None else "".join(texts)
    if not text.strip():
        return "the last message has no text"
    kept = [] if control.query_text is None else _beside_query("".join(texts), control)
    return Turn(text, [*messages[:-1], {**last, "content": [PLACEHOLDER, *kept, *others]}])


def _beside_query(message: str, control: CacheControl) -> list[str]:
    """Return what of a message stays in the scope when its query is named.

    Named documents stand for the pages the message carries. Without them, all of the message but
    the query itself must be equal. Either way a named query never meets a whole message.
    """
    if control.context is not None:
        return ["\0query"]
    assert control.query_text is not None, "no query is named"
    return ["\0query", message.replace(control.query_text, PLACEHOLDER)]


def _parts(content: Any) -> tuple[list[str], list[Any]]:
    """Divide message content into its texts and everything else."""
    if isinstance(content, str):
        return [content], []
    texts: list[str] = []
    others: list[Any] = []
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, Mapping) else None
        if isinstance(text, str) and part.keys() == {"type", "text"}:
            texts.append(text)
        else:
            others.append(part)
    return texts, others
