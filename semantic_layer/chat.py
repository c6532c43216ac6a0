"""One chat as similarity is judged on it: its last message, and what that needs of the rest. Pure.

Knows no stored answers; what two chats share is for `histories`.
"""

from dataclasses import dataclass
from functools import cached_property

from semantic_layer.analysis import analyse
from semantic_layer.dependence import Dependence, dependence_of
from semantic_layer.small_talk import core_of, reply_of

_MOST_CHARS = 400  # of each message that is embedded beside the last one

Said = tuple[str, str]


@dataclass(frozen=True)
class Chat:
    """A conversation; ``history`` holds (role, text) of each message before ``text``, the last.

    ``grounded`` tells that a system prompt says what it is about.
    """

    text: str
    history: tuple[Said, ...] = ()
    grounded: bool = False

    @cached_property
    def dependence(self) -> Dependence:
        """What the last message needs of the history."""
        return dependence_of(self.text, self.history)

    @property
    def alone(self) -> bool:
        """Whether nothing before the last message matters."""
        return not self.history or self.dependence.alone

    @cached_property
    def offer(self) -> str:
        """What the assistant said last, without its small talk."""
        said = next((text for role, text in reversed(self.history) if role == "assistant"), "")
        return core_of(said)

    @cached_property
    def resolved(self) -> str:
        """The text that is embedded: the last message after what it most likely refers to."""
        if self.alone:
            return self.text
        topic = next(filter(None, (_topic(*said) for said in reversed(self.history))), "")
        return "\n".join(filter(None, (topic, self.offer[-_MOST_CHARS:], self.text)))


def _topic(role: str, text: str) -> str:
    """Return what the user said in a message, "" when it tells nothing by itself."""
    core = core_of(text) if role == "user" else ""
    return core[:_MOST_CHARS] if len(analyse(core).content) > 1 and not reply_of(core) else ""
