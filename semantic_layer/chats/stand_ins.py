"""What stands in one chat where another thing stands in a chat that is the same around it. Pure.

Who words a whole chat anew words all of it anew. Where messages of the user are the same, word for
word, and between them each side says what the other does not, the two are about different things,
however alike a verifier finds the texts.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from semantic_layer.chats.chat import Chat, Said
from semantic_layer.chats.differences import key_of
from semantic_layer.chats.referred import words_of_lines
from semantic_layer.chats.small_talk import core_of, reply_of, sentences

_TAKES_UP = frozenset({"reply", "answer"})
_LEAST_OWN = 2  # words of an assistant's message that the other chat lacks
_MOST_SHOWN = 4


def stand_in(asked: Chat, stored: Chat, one: Sequence[Said], other: Sequence[Said]) -> str:
    """Name what each side says in the place of what the other does, "" when nothing is.

    ``one`` and ``other`` are the histories to be compared. What an assistant says counts where the
    other chat never speaks of it; and mostly it is told by what he answers: there it takes more,
    unless the last message takes it up.
    """
    mine, yours = _telling(one), _telling(other)
    keys, other_keys = ([(role, key_of(text)) for role, text in side] for side in (mine, yours))
    if not any(role == "user" and not reply_of(key) for role, key in set(keys) & set(other_keys)):
        return ""
    blocks = SequenceMatcher(None, keys, other_keys, autojunk=False).get_opcodes()
    for tag, i1, i2, j1, j2 in blocks:
        if tag != "replace":
            continue
        for role in ("user", "assistant"):
            own, others = _of(role, mine[i1:i2]), _of(role, yours[j1:j2])
            own, others = own - others, others - own
            least = 1
            if role == "assistant" and own and others:
                own, others = own - _words(yours, stored), others - _words(mine, asked)
                least = 1 if asked.dependence.kind in _TAKES_UP else _LEAST_OWN
            if min(len(own), len(others)) >= least and len(own) + len(others) > _LEAST_OWN:
                return " / ".join("/".join(sorted(side)[:_MOST_SHOWN]) for side in (own, others))
    return ""


def _telling(history: Iterable[Said]) -> list[Said]:
    """Return the messages without small talk, those that are nothing else left out."""
    cores = ((role, core_of(text)) for role, text in history)
    return [(role, core) for role, core in cores if core]


def _words(said: Iterable[Said], chat: Chat) -> frozenset[str]:
    return words_of_lines([*(line for _, text in said for line in sentences(text)), chat.text])


def _of(role: str, said: Iterable[Said]) -> frozenset[str]:
    return words_of_lines([line for by, text in said if by == role for line in sentences(text)])
