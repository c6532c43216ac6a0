"""What of a conversation may vary for a semantic hit: what was said in plain text. Pure.

What may not vary is the frame, part of the scope: system prompts, tool calls and their results,
everything that is no plain text of user or assistant, and every other field of the request. Where a
query is named without documents, nothing may but the query. What the varying part must have in
common is for `histories` to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec

from semantic_layer.chats.chat import Chat
from semantic_layer.entry import Entry
from semantic_layer.request import CacheControl, CacheQuery

PLACEHOLDER = "\0text"
_SPEAKERS = frozenset({"user", "assistant"})
_APIS = frozenset({"chat", "messages"})


@dataclass(frozen=True, slots=True)
class Turn:
    """The part that varies (``chat``) and the messages with that part taken out (``frame``)."""

    chat: Chat
    frame: list[Any]

    @property
    def text(self) -> str:
        """The text of the last message."""
        return self.chat.text


def split(query: CacheQuery, control: CacheControl) -> Turn | str:
    """Take the varying part out of a conversation, or say why that can't be done."""
    messages = query.request.get("messages")
    if query.api not in _APIS or not isinstance(messages, list) or not messages:
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
    may_vary = control.query_text is None or control.context is not None
    fixed = _num_fixed(messages[:-1]) if may_vary else len(messages) - 1
    history = tuple((m["role"], _text_of(m)) for m in messages[fixed:-1])
    grounded = fixed > 0 or bool(query.request.get("system"))
    frame = [*messages[:fixed], {**last, "content": [PLACEHOLDER, *kept, *others]}]
    return Turn(Chat(text, history, grounded, documented=bool(control.context)), frame)


def chat_of(entry: Entry) -> Chat:
    """Read the chat that a stored answer ended; without its request, only its last message."""
    chat = _stored_chat(entry.request, entry.query, entry.context) or Chat(entry.text or "")
    return replace(chat, restated=entry.restated) if entry.restated else chat


@lru_cache(maxsize=512)
def _stored_chat(
    request: bytes, query_text: str | None, context: tuple[str, ...] | None
) -> Chat | None:
    if not request:
        return None
    query = CacheQuery("", "", "", msgspec.json.decode(request))
    turn = split(query, CacheControl(query_text=query_text, context=context))
    return None if isinstance(turn, str) else turn.chat


def _num_fixed(messages: Sequence[Any]) -> int:
    """Count the leading messages that must be equal: up to the last that is not plain speech."""
    plain = (_is_plain(message) for message in reversed(messages))
    return next((len(messages) - i for i, is_plain in enumerate(plain) if not is_plain), 0)


def _is_plain(message: Any) -> bool:
    if not isinstance(message, Mapping) or message.get("role") not in _SPEAKERS:
        return False
    fields = {name for name, value in message.items() if value is not None}
    return fields == {"role", "content"} and _text_of(message) != "" and not _other_parts(message)


def _text_of(message: Mapping[str, Any]) -> str:
    return "".join(_parts(message.get("content"))[0])


def _other_parts(message: Mapping[str, Any]) -> bool:
    return bool(_parts(message.get("content"))[1])


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
