"""A rewriter for unit tests: rewrites by a table of last messages, breaks on demand."""

from collections.abc import Mapping

from semantic_layer.chats.chat import Chat
from semantic_layer.errors import RewriterFailed


class FakeRewriter:
    """Gives ``table``'s text for the first message of a chat; keeps the chats it was asked of."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table = dict(table)
        self.down = False
        self.asked: list[Chat] = []

    async def rewrite(self, chat: Chat) -> str:
        self.asked.append(chat)
        if self.down:
            raise RewriterFailed("the fake is down")
        return self.table[chat.history[0][1]]
