"""What two histories say in other words, as pairs of whole requests for a verifier. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.context_score import Part
from semantic_layer.chats.differences import difference, key_of
from semantic_layer.chats.referred import resolved, words_of_lines
from semantic_layer.chats.remains import Doubt, Left, lines_of, split_of, twins_of
from semantic_layer.chats.small_talk import core_of, is_empty, reply_of, sentences

_NUM_NEAR = 2  # messages of the user before the last
_TAKES_UP = frozenset({"reply", "answer"})
_ASKS = ("?", "？")
_NEEDS_OFFER = frozenset({"reply", "answer", "short", "opening"})


def doubts_of(asked: Chat, stored: Chat, here: Left, there: Left) -> list[Doubt]:
    """Pair what the users said, and what the assistants did, each with the message that follows.

    A message that takes up an offer also pairs the questions that made it, by themselves.
    ``here`` and ``there`` are what is left of the histories. What only differs in words that tell
    nothing is no doubt.
    """
    found = []
    if not _says_the_same(here.user, there.user):
        one = resolved(asked.text, _with_topic(asked, here.user), there.user)
        other = resolved(stored.text, _with_topic(stored, there.user), here.user)
        found.append(_doubt("user", one, other))
    ones, others = _assistants(asked, stored, here.assistant, there.assistant)
    if not _says_the_same(ones, others):
        one, other = resolved(asked.text, ones, others), resolved(stored.text, others, ones)
        found.append(_doubt(_weight_of_answers(asked, stored), one, other))
    if asked.dependence.kind in _TAKES_UP:
        question, stored_question = _last_question(asked.offer), _last_question(stored.offer)
        if question and stored_question and not _says_the_same([question], [stored_question]):
            found.append(_doubt("offer", question, stored_question))
    return found


def _weight_of_answers(asked: Chat, stored: Chat) -> Part:
    """Say what the assistants' words are to the last messages: little where all words are others.

    An answer to the same words is another answer if it is put otherwise; to other words it is not.
    """
    if _TAKES_UP.intersection((asked.dependence.kind, stored.dependence.kind)):
        return "assistant"
    return "assistant" if _told(asked) & _told(stored) else "aside"


def _told(chat: Chat) -> set[str]:
    """Return what the user said before that tells anything, each message as a whole."""
    cores = (core_of(text) for role, text in chat.history if role == "user")
    return {key_of(core) for core in cores if core and not reply_of(core)}


def answered_otherwise(one: Chat, other: Chat) -> tuple[list[str], list[str]]:
    """Return what the assistants answered otherwise to the same words of the user."""
    answers, others = _answers(one), _answers(other)
    ones: list[str] = []
    theirs: list[str] = []
    for key, text in answers.items():
        if key in others and others[key] != text:
            here, there = _telling(text), _telling(others[key])
            ones += [line for line in here if line not in there]
            theirs += [line for line in there if line not in here]
    return ones, theirs


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


def _answers(chat: Chat) -> dict[str, str]:
    """Return what the assistant said by the words of the user before."""
    return {
        key_of(said): text
        for (by, said), (role, text) in pairwise(chat.history)
        if by == "user" and role == "assistant"
    }


def _telling(text: str) -> list[str]:
    return [line for _, line in lines_of([("", text)])]


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


def _last_question(offer: str) -> str:
    return next((said for said in reversed(sentences(offer)) if said.endswith(_ASKS)), "")


def _with_topic(chat: Chat, lines: Sequence[str]) -> list[str]:
    """Add the user's first line that both chats have: mostly it says what the chat is about."""
    before: list[str] = []
    for role, line in split_of(chat.history):
        if role != "user" or is_empty(line):
            continue
        if not any(own in line for own in lines):
            place = sum(any(own in said for said in before) for own in lines)
            return [*lines[:place], line, *lines[place:]]
        before.append(line)
    return list(lines)


def _says_the_same(one: Sequence[str], other: Sequence[str]) -> bool:
    found = difference(" ".join(one), " ".join(other))
    return found.is_none and found.in_order


def _doubt(part: Part, one: str, other: str) -> Doubt:
    found = difference(one, other)
    return Doubt(part, one, other, found.is_addition, str(found))
