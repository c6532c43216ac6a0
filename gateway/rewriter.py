"""A rewriter that asks a model: what does the last message ask, said so that it stands alone?

The instructions are the same each time, so a local model has them in its prefix cache. Knows no
cache; what of the model's words is believed is the semantic layer's to say.
"""

from typing import Any

from gateway.answer import Assembler
from gateway.backends.base import Work
from gateway.backends.routing import Backends
from gateway.errors import StrataError
from semantic_layer import Chat, RewriterFailed

SALT = b"strata-rewriter"
INSTRUCTIONS = (
    "You are given a conversation of a user with an assistant. Write what the user asks for in the "
    "last message as one short request that can be understood without the conversation. Name what "
    "words such as it, that, there or yes stand for. Keep every number, name, date, product, "
    "place and condition that the answer depends on; leave small talk out; add nothing. Do not "
    "answer the request. Write in the language of the last message. Reply with the request alone."
)
_MOST_TOKENS = 120
_MOST_CHARS = 6_000  # of the conversation, its end


class ModelRewriter:
    """Asks a model served here for each request; see `semantic_layer.Rewriter`."""

    def __init__(self, backends: Backends, model: str) -> None:
        self._backends = backends
        self._model = model

    async def rewrite(self, chat: Chat) -> str:
        """Return the model's words, without quotes around them.

        Raises:
            RewriterFailed: the model is not served, broke, or gave no whole text.
        """
        found = self._backends.find(self._model)
        if found is None:
            raise RewriterFailed(f"no model {self._model} is served here")
        backend, info = found
        body = {**instructed(info.model_id), "max_tokens": _MOST_TOKENS, "temperature": 0}
        body["messages"].append({"role": "user", "content": _question(chat)})
        assembler = Assembler()
        try:
            work = Work("rewriter", info.model_id, body, SALT)
            async for event in self._backends.stream(backend, work, lambda _stand_in: False):
                assembler.add(event)
        except StrataError as error:
            raise RewriterFailed(f"{self._model} cannot rewrite: {error}") from error
        answer = assembler.answer
        if answer is None or not answer.is_storable or answer.is_exact_only:
            raise RewriterFailed(f"{self._model} gave no whole text")
        return answer.text.strip().strip('"“”「」').strip()


def instructed(model: str) -> dict[str, Any]:
    """Return the start of every request to the rewriter: what is worth pinning."""
    return {"model": model, "messages": [{"role": "system", "content": INSTRUCTIONS}]}


def _question(chat: Chat) -> str:
    said = "\n".join(f"{role}: {text}" for role, text in chat.history)
    return f"Conversation:\n{said[-_MOST_CHARS:]}\n\nLast message:\n{chat.text}"
