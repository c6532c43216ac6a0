"""What two histories contradict each other in, whatever a verifier might say. Pure."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.choices import other_choice
from semantic_layer.chats.differences import cardinal, difference, key_of
from semantic_layer.chats.doubts import answered_otherwise, near_lines
from semantic_layer.chats.remains import Left, twins_of
from semantic_layer.chats.selves import other_self
from semantic_layer.chats.small_talk import (
    ENDS_ASKING,
    Reply,
    core_of,
    reply_of,
    sentences,
    words_of,
)
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of


def clash_of(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Name what is left of two histories that can't both be the same, "" when nothing is.

    Lines that differ in little and contradict each other; another yes or no to the same. None of it
    could be small talk: that has no like on the other side.
    """
    for role in ("assistant", "user"):
        found = close_clash(
            here.of(role), there.of(role), (_said(asked, here), _said(stored, there))
        )
        if found:
            return f"the {role} said another thing: {found}"
    if bool(here.user) != bool(there.user) and not all(map(_told_of, (asked, stored))):
        return f"only one user told anything: {(here.user or there.user)[0]}"
    found = _other_matter(asked, stored, here, there)
    if found:
        return found
    ones, others = _explained(here.user), _explained(there.user)
    if ones and others and ones.isdisjoint(others):
        return f"the user asked about {'/'.join(sorted(ones))} / {'/'.join(sorted(others))}"
    return _other_reply(asked, stored) or other_answer(asked, stored)


def _said(chat: Chat, left: Left) -> set[str]:
    """Return the numbers of the user's own lines; an assistant names some to choose from."""
    return _numbers([*left.user, chat.text])


def _other_matter(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Say what each user is, chose or named where the other is, chose or named another."""
    found = other_self(asked, stored)
    if found:
        return f"the user is or chose another: {found}"
    found = other_choice(asked, stored, here, there)
    if found:
        return f"the user meant another: {found}"
    found = replaced(*(_equations(side.user) for side in (here, there)))
    found = found or other_object(here.user, there.user)
    return found and f"the user said another thing: {found}"


_EXPLAIN = re.compile(
    r"(?:what|who)(?:'s| is| are| was| were) (?:an? )?([\w+#.-]+)|(?:什么是|什么叫|谁是)(.+)"
)


def _explained(lines: Iterable[str]) -> set[str]:
    """Return the things of which a user asked what they are."""
    found = (_EXPLAIN.fullmatch(key_of(line)) for line in lines)
    return {match[1] or match[2] for match in found if match}


def other_answer(one: Chat, other: Chat) -> str:
    """Name what two assistants answered shortly, and without a common word, to the same words."""
    answers, others = _answers(one), _answers(other)
    for asked in answers.keys() & others.keys():
        here, there = answers[asked], others[asked]
        if set(here).isdisjoint(there) and max(map(len, (here, there))) <= _SHORT_ANSWER:
            return f"{' '.join(here)} / {' '.join(there)} to {asked}"
    return ""


def _answers(chat: Chat) -> Mapping[str, tuple[str, ...]]:
    """Return the telling words of each answer by what it answers, answers without any left out."""
    found = {}
    for (by, said), (role, text) in pairwise(chat.history):
        core = core_of(text) if (by, role) == ("user", "assistant") else ""
        words = tuple(token.norm for token in analyse(core).content if not token.weak)
        if words and not reply_of(core):
            found[key_of(said)] = words
    return found


_SHORT_ANSWER = 6  # telling words, or signs of Chinese


_EQUATES = re.compile(r"\b(?:is|are|was|were|equals|called|means)\b|=|[\u3400-\u9fff]")


def _equations(lines: Iterable[str]) -> list[str]:
    """Keep the lines that say what something is: another word in them is another fact."""
    return [line for line in lines if _EQUATES.search(line)]


def _told_of(chat: Chat) -> bool:
    """Say whether a user said anything before the last message that is no small talk."""
    return any(
        core_of(text) and not reply_of(text) for role, text in chat.history if role == "user"
    )


def lone_of(asked: Chat, stored: Chat, here: Left, there: Left) -> str:
    """Name numbers or names of what matters that each chat lacks of the other, "" when none."""
    answers = answered_otherwise(asked, stored)
    ones = [*near_lines(asked, here.user), *answers[0]]
    others = [*near_lines(stored, there.user), *answers[1]]
    for find, known in ((_numbers, _numbers), (_names, _words)):
        found_one, found_other = find(ones), find(others)
        if found_one and found_other:
            lone = _lone(found_one, stored, known)
            lone_other = _lone(found_other, asked, known) if lone else []
            if lone_other:
                return f"only one speaks of {'/'.join(lone)}, the other of {'/'.join(lone_other)}"
    return ""


def _lone(found: set[str], chat: Chat, known: Callable[[list[str]], set[str]]) -> list[str]:
    """Return what a chat says nothing of; lines of words that begin otherwise are not read.

    A number may stand there as a word, so for one all lines are.
    """
    starts = tuple(word[:_START] for word in found)
    is_number = any(char.isdigit() for word in found for char in word)
    lines = [*_texts(chat), chat.text]
    read = [x for x in lines if is_number or any(start in x.casefold() for start in starts)]
    return sorted(found - known(read))


_START = 3  # letters that forms of a word have in common


def close_clash(
    one: Sequence[str], other: Sequence[str], said: tuple[set[str], set[str]] | None = None
) -> str:
    """Name what lines contradict each other in that differ in little else.

    With ``said``, the numbers that each user says anywhere, none of those contradicts.
    """
    for twin in twins_of(one, other):
        if twin.is_close and twin.difference.conflict:
            if said is not None and _is_said_elsewhere(twin.one, twin.other, *said):
                continue
            return twin.difference.conflict
        names = _names([twin.one]) - _words([twin.other]), _names([twin.other]) - _words([twin.one])
        if twin.is_close and all(names):
            return " / ".join("/".join(sorted(side)) for side in names)
    return ""


def _is_said_elsewhere(one: str, other: str, here: set[str], there: set[str]) -> bool:
    """Say whether two lines differ in numbers of which one side says all, if in another line."""
    numbers, others = _numbers([one]), _numbers([other])
    own, theirs = numbers - others, others - numbers
    return bool(own and theirs) and (own <= there or theirs <= here)


def replaced(one: Sequence[str], other: Sequence[str]) -> str:
    """Name the words of statements that differ in one word each, and not in sense."""
    ones, others = ([x for x in lines if not ENDS_ASKING.search(x)] for lines in (one, other))
    for twin in twins_of(ones, others):
        found = twin.difference
        if twin.is_close and len(found.one) == len(found.other) == 1:
            return str(found)
    pairs = ((a, b) for a in ones for b in others if language_of(a) == language_of(b) == "zh")
    return next(filter(None, (_replaced_zh(*map(key_of, pair)) for pair in pairs)), "")


def other_object(one: Sequence[str], other: Sequence[str]) -> str:
    """Name the things of statements that are the same but for one thing behind an article."""
    ones, others = ([x for x in lines if not ENDS_ASKING.search(x)] for lines in (one, other))
    for twin in twins_of(ones, others):
        found, said = twin.difference, (key_of(twin.one), key_of(twin.other))
        if len(found.one) != 1 or len(found.other) != 1 or found.is_none:
            continue
        words = (found.one[0], found.other[0])
        things = [_object(line, word) for line, word in zip(said, words, strict=True)]
        if all(things) and _without(said[0], things[0]) == _without(said[1], things[1]):
            return " / ".join(things)
    return ""


def _object(line: str, word: str) -> str:
    """Return the thing that a word names with its article, "" where it names none."""
    found = re.search(rf"\b(?:an?|the|my|our|this|two|some) ({re.escape(word.casefold())})\b", line)
    return found[1] if found else ""


def _without(line: str, thing: str) -> str:
    return re.sub(rf"\b(?:an? )?{re.escape(thing)}\b", "", line)


def _replaced_zh(one: str, other: str) -> str:
    """Name what two sentences have between the same beginning and end, if that is little."""
    start = _num_common(one, other)
    end = _num_common(one[start:][::-1], other[start:][::-1])
    here, there = one[start : len(one) - end], other[start : len(other) - end]
    sizes = len(here), len(there)
    is_little = min(sizes) >= _LEAST_REPLACED and max(sizes) <= start + end
    return f"{here} / {there}" if is_little and set(here).isdisjoint(there) else ""


def _num_common(one: str, other: str) -> int:
    """Count the signs that two texts begin with alike."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


_LEAST_REPLACED = 2  # signs; one more or other mostly is grammar


def other_things(one: Sequence[str], other: Sequence[str]) -> str:
    """Name the numbers or names that only one side has."""
    for find in (_numbers, _names):
        lone = find(one) ^ find(other)
        if lone:
            return f"only one speaks of {'/'.join(sorted(lone))}"
    return ""


def exchanged(one: Chat, other: Chat) -> str:
    """Name a line whose things changed places in the other history, small talk or not."""
    heres: dict[str, list[str]] = defaultdict(list)
    for line in dict.fromkeys(_texts(one)):
        heres[_letters(line)].append(line)
    for there in dict.fromkeys(_texts(other)):
        same = heres.get(_letters(there), ())
        for here in () if there in same else same:
            if _bag(here) == _bag(there) and difference(here, there).conflict:
                return f"{here} / {there}: the same words, exchanged"
    return ""


def _other_reply(one: Chat, other: Chat) -> str:
    heres, theres = _replies(one), _replies(other)
    for asked in heres.keys() & theres.keys():
        if {heres[asked], theres[asked]} == {"yes", "no"}:
            return f"{heres[asked]} / {theres[asked]} to {asked}"
    return ""


def _replies(chat: Chat) -> Mapping[str, Reply]:
    """Return each bare yes or no by what it replies to."""
    return {
        key_of(before): reply_of(text)
        for (_, before), (role, text) in pairwise(chat.history)
        if role == "user" and reply_of(text)
    }


def _texts(chat: Chat) -> list[str]:
    return [line for _, text in chat.history for line in sentences(text)]


@lru_cache(maxsize=16_384)
def _letters(text: str) -> str:
    """Return what texts of the same words have in common, whatever their order."""
    return "".join(sorted(filter(str.isalnum, key_of(text))))


def _bag(text: str) -> frozenset[str]:
    return frozenset(token.norm for token in analyse(text).tokens)


def _numbers(lines: Iterable[str]) -> set[str]:
    return set().union(*map(_numbers_of, lines))


@lru_cache(maxsize=16_384)
def _numbers_of(line: str) -> frozenset[str]:
    """Return the numbers of a line, 08:12 and 8.12 as one."""
    times = frozenset(f"{int(hour)}:{minute}" for hour, minute in _CLOCK.findall(line))
    rest = _CLOCK.sub(" ", line) if times else line
    return times.union(cardinal(number) for number in analyse(rest).numbers)


_CLOCK = re.compile(
    r"(?<![\d.:£$€¥])([01]?\d|2[0-3])[:.]([0-5]\d)(?![\d.:%]|\s*(?:per|kg|m\b|km|GB))"
)


def _names(lines: Iterable[str]) -> set[str]:
    tokens = (token for line in lines for token in analyse(line).tokens)
    known = words_of("deictic") | words_of("light")
    return {t.norm for t in tokens if t.name and t.surface.casefold() not in known}


def _words(lines: Iterable[str]) -> set[str]:
    return {token.norm for line in lines for token in analyse(line).tokens}
