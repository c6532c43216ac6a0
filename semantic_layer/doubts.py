"""What two histories say in other words, as pairs of whole requests for a verifier. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from semantic_layer.chat import Chat
from semantic_layer.differences import difference, key_of
from semantic_layer.referred import resolved, words_of_lines
from semantic_layer.remains import Doubt, Left, lines_of, twins_of

_NUM_NEAR = 2  # messages of the user before the last
_NEEDS_OFFER = frozenset({"reply", "answer", "short", "opening"})


def doubts_of(asked: Chat, stored: Chat, here: Left, there: Left) -> list[Doubt]:
    """Pair what the users said, and what the assistants did, each with the message that follows.

    ``here`` and ``there`` are what is left of the histories. What only differs in words that tell
    nothing is no doubt.
    """
    found = []
    if not _says_the_same(here.user, there.user):
        one = resolved(asked.text, _with_topic(asked, here.user), there.user)
        other = resolved(stored.text, _with_topic(stored, there.user), here.user)
        found.append(_doubt(one, other))
    ones, others = _assistants(asked, stored, here.assistant, there.assistant)
    if not _says_the_same(ones, others):
        found.append(
            _doubt(resolved(asked.text, ones, others), resolved(stored.text, others, ones))
        )
    return found


def answered_otherwise(one: Chat, other: Chat) -> tuple[list[str], list[str]]:
    """Return what the assistants answered otherwise to the same words of the user."""
    answers, others = _answers(one), _answers(other)
    both = answers.keys() & others.keys()
    return (
        [line for key, lines in answers.items() if key in both for line in lines - others[key]],
        [line for key, lines in others.items() if key in both for line in lines - answers[key]],
    )


def near_lines(chat: Chat, lines: Sequence[str]) -> list[str]:
    """Keep the lines that matter most: of the beginning, of the end, or on the last message."""
    texts = [text for role, text in chat.history if role == "user"]
    ends = [*texts[:1], *texts[-_NUM_NEAR:]]
    aim = words_of_lines([chat.text])
    return [
        line
        for line in lines
        if any(line in text for text in ends) or not words_of_lines([line]).isdisjoint(aim)
    ]


def _answers(chat: Chat) -> dict[str, frozenset[str]]:
    """Return the lines of the assistant by the words of the user before."""
    return {
        key_of(said): frozenset(line for _, line in lines_of([(role, text)]))
        for (by, said), (role, text) in pairwise(chat.history)
        if by == "user" and role == "assistant"
    }


def _assistants(
    asked: Chat, stored: Chat, here: Sequence[str], there: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return what the assistants said otherwise: near the end, or in lines that differ in little.

    What they answered to the same words counts as well. A reply also needs what it replies to when
    only one of them says more.
    """
    close = [t for t in twins_of(here, there) if t.is_close and not t.difference.is_none]
    ones, others = [t.one for t in close], [t.other for t in close]
    last_one, last_other = _last(asked, here), _last(stored, there)
    if asked.dependence.kind in _NEEDS_OFFER and (last_one or last_other):
        last_one, last_other = last_one or _last(asked), last_other or _last(stored)
    for one, other in ((last_one, last_other), answered_otherwise(asked, stored)):
        if one and other:
            ones += [line for line in one if line not in ones]
            others += [line for line in other if line not in others]
    return ones, others


def _last(chat: Chat, among: Sequence[str] | None = None) -> list[str]:
    """Return the lines of the assistant's last message that tells anything."""
    for role, text in reversed(chat.history):
        lines = [line for _, line in lines_of([(role, text)])] if role == "assistant" else []
        if lines:
            return [line for line in lines if among is None or line in among]
    return []


def _with_topic(chat: Chat, lines: Sequence[str]) -> list[str]:
    """Add the user's first line that both chats have: mostly it says what the chat is about."""
    said = [line for role, line in lines_of(chat.history) if role == "user"]
    shared = [line for line in said if not any(own in line for own in lines)]
    topic = shared[:1]
    place = len([own for own in lines if topic and _stands_before(said, own, topic[0])])
    return [*lines[:place], *topic, *lines[place:]]


def _stands_before(said: Sequence[str], line: str, topic: str) -> bool:
    first = next((i for i, each in enumerate(said) if line in each), len(said))
    return first < said.index(topic)


def _says_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    found = difference(" ".join(one), " ".join(other))
    return found.is_none and found.in_order


def _doubt(one: str, other: str) -> Doubt:
    found = difference(one, other)
    return Doubt(one, other, found.is_addition, str(found))
