"""A chat's last message put as a request that stands alone, by a model; when to believe it.

Knows no backend: who asks the model is the caller's.
"""

from typing import Protocol

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.dependence import dependence_of
from semantic_layer.chats.differences import cardinal
from semantic_layer.chats.referred import words_of_lines
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, normalise

_MOST_CHARS = 400
_LEAST_KEPT = 0.5  # of the last message's telling words


class Rewriter(Protocol):
    """Puts what a chat's last message asks for in words that need nothing said before."""

    async def rewrite(self, chat: Chat) -> str:
        """Return the request as one line of text.

        Raises:
            RewriterFailed: the model cannot be asked, or gave no text.
        """
        ...


def distrust(text: str, chat: Chat) -> str:
    """Say why a rewriting is not to be used, "" when it may be.

    It must be one short line in the language of the last message that stands alone, keep the
    numbers, names and most words of that message, and bring none that nobody said.
    """
    if not text or "\n" in text or len(text) > _MOST_CHARS:
        return "not one short line"
    if language_of(normalise(text)) != language_of(normalise(chat.text)):
        return "in another language"
    needs = dependence_of(text, ())
    if not needs.alone:
        return f"does not stand alone ({needs.kind}: {needs.detail})"
    return _lost(text, chat.text) or _made_up(text, chat)


def _lost(text: str, last: str) -> str:
    marked, words = _marked(last), _words(text)
    lost = [surface for norm, surface in marked.items() if norm not in words]
    if lost:
        return f"lost {'/'.join(lost)}"
    telling = words_of_lines([last])
    kept = telling & words_of_lines([text])
    return "another request" if len(kept) < _LEAST_KEPT * len(telling) else ""


def _made_up(text: str, chat: Chat) -> str:
    said = {
        word for line in (*(line for _, line in chat.history), chat.text) for word in _words(line)
    }
    new = [surface for norm, surface in _marked(text).items() if norm not in said]
    return f"nobody said {'/'.join(new)}" if new else ""


def _marked(text: str) -> dict[str, str]:
    """Return the numbers and names of a text, each as it is compared and as it is written."""
    tokens = analyse(text).tokens
    return {cardinal(t.norm): t.surface for t in tokens if t.name or t.kind == "number"}


def _words(text: str) -> set[str]:
    return {cardinal(token.norm) for token in analyse(text).tokens}
