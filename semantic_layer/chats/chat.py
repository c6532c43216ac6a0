"""One chat as similarity is judged on it: its last message, and what that needs of the rest. Pure.

Knows no stored answers; what two chats share is for `histories`.
"""

from dataclasses import dataclass
from functools import cached_property

from semantic_layer.chats.dependence import Dependence, dependence_of
from semantic_layer.chats.premises import is_too_long, orders_of, premises_of
from semantic_layer.chats.small_talk import core_of, reply_of
from semantic_layer.text.analysis import analyse

_MOST_CHARS = 200  # of each message that is embedded beside the last one: more takes 10 ms more

Said = tuple[str, str]


@dataclass(frozen=True)
class Chat:
    """A conversation; ``history`` holds (role, text) of each message before ``text``, the last.

    ``grounded`` tells that a system prompt says what it is about, ``documented`` that the answer
    rests on named documents. ``restated`` is the last message in words of a rewriter that need no
    history, "" without one.
    """

    text: str
    history: tuple[Said, ...] = ()
    grounded: bool = False
    restated: str = ""
    documented: bool = False

    @cached_property
    def dependence(self) -> Dependence:
        """What the last message needs of the history; all of one that is too long to be read."""
        if is_too_long(self.history):
            return Dependence("premise", "too much was said to be read")
        return dependence_of(self.text, self.history, documented=self.documented)

    @property
    def alone(self) -> bool:
        """Whether nothing before the last message matters."""
        return not self.history or self.dependence.alone

    @property
    def is_whole(self) -> bool:
        """Whether the last message says by itself what it asks, whatever was told before."""
        return self.alone or self.dependence.kind == "premise"

    @property
    def standing(self) -> str:
        """The last message in words that need no history, "" where there are none."""
        return self.text if self.alone else self.restated

    @cached_property
    def premises(self) -> tuple[str, ...]:
        """What was said that the answer may turn on, whole as the last message is by itself."""
        return premises_of(self.text, self.history)

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """What the user laid down for all that follows."""
        return orders_of(self.history)

    @cached_property
    def offer(self) -> str:
        """What the assistant said last, without its small talk."""
        said = next((text for role, text in reversed(self.history) if role == "assistant"), "")
        return core_of(said)

    @cached_property
    def tells_records(self) -> bool:
        """Whether the last message goes on from figures that the assistant gave before.

        A question about somebody's own records is then about those that stand in the chat.
        """
        if self.is_whole or is_too_long(self.history):
            return False
        given = (text for role, text in self.history if role == "assistant")
        return any(char.isdigit() for text in given for char in text)

    @cached_property
    def resolved(self) -> str:
        """The text that is embedded: the last message after what it most likely refers to."""
        if not self.history:
            return self.text
        if self.dependence.kind == "premise":
            return "\n".join((" ".join(self.premises)[-_MOST_CHARS:], self.text))
        if self.standing:
            return self.standing
        topic = next(filter(None, (_topic(*said) for said in reversed(self.history))), "")
        return "\n".join(filter(None, (topic, self.offer[-_MOST_CHARS:], self.text)))


def _topic(role: str, text: str) -> str:
    """Return what the user said in a message, "" when it tells nothing by itself."""
    core = core_of(text) if role == "user" else ""
    return core[:_MOST_CHARS] if len(analyse(core).content) > 1 and not reply_of(core) else ""
