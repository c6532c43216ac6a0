"""What two users said they are, or which letter they chose. Pure."""

import re
from collections.abc import Iterable

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.differences import difference, key_of
from semantic_layer.chats.small_talk import sentences
from semantic_layer.chats.told import CLAUSE, states


def other_self(asked: Chat, stored: Chat) -> str:
    """Name what only one user said he is, or chose, where the other said another thing."""
    here, there = _lines(asked), _lines(stored)
    own = [line for key, line in here.items() if key not in there]
    others = [line for key, line in there.items() if key not in here]
    letters, other_letters = _letters(own), _letters(others)
    if letters and other_letters and letters.isdisjoint(other_letters):
        return f"{'/'.join(sorted(letters))} / {'/'.join(sorted(other_letters))}"
    return _other_role(own, others)


def _lines(chat: Chat) -> dict[str, str]:
    """Return what the user said, by a form that the same words share."""
    said = (line for role, text in chat.history if role == "user" for line in sentences(text))
    return {key_of(line): line for line in said}


def _letters(lines: Iterable[str]) -> set[str]:
    return {
        letter.upper()
        for line in lines
        for letter in (*_LETTER.findall(line), *_OPTION.findall(line.casefold()))
    }


_LETTER = re.compile(
    r"(?<![^\W\u3400-\u9fff])(?<!['’.&/+-])(?!I\b|(?<![a-z] )A \w)[A-Z]"
    r"(?![^\W\u3400-\u9fff]|['’&/+#-]|\.\w)"
)
_OPTION = re.compile(r"(?:\boptions? |选择?|选项) ?([a-h])(?![a-z])")


def _other_role(own: list[str], others: list[str]) -> str:
    """Name two roles of which each user has one, or one role where the other tells just one thing.

    What that one thing is ("I rent", "I'm a landlord") no list of words can tell.
    """
    roles, other_roles = _roles(own), _roles(others)
    if roles and other_roles:
        is_same = any(difference(a, b).is_none for a in roles for b in other_roles)
        return "" if is_same else f"{'/'.join(roles)} / {'/'.join(other_roles)}"
    told, other_told = (list(filter(states, lines)) for lines in (own, others))
    if (roles or other_roles) and len(told) == len(other_told) == 1:
        return f"{told[0]} / {other_told[0]}"
    return ""


def _roles(lines: Iterable[str]) -> list[str]:
    clauses = (key_of(clause) for line in lines for clause in CLAUSE.split(line))
    found = (_ROLE.fullmatch(clause) for clause in clauses)
    return [match[1] or match[2] for match in found if match]


_ROLE = re.compile(
    r"i(?:'m| am) an? (?!bit\b|little\b|lot\b)((?:[a-z-]+ ){0,2}[a-z-]+)"
    r"|我是(?:一?[个名位])?(?![说想觉在用从来问指因要被不])([\u4e00-\u9fff]{1,6}(?<!的))"
)
