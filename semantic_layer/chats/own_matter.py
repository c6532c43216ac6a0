"""Whether a message asks for a fact of somebody whom it names, whoever asks. Pure.

"What's the minimum age to use the Ironside gym floor" does. What only names where to, or points at
a thing that it leaves to what was said before ("is the pool open at Ironside"), does not.
"""

import re
from functools import lru_cache

from semantic_layer.chats.small_talk import WORD, words_of
from semantic_layer.chats.subjects import has_name
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, normalise

_MOST_READ = 400  # signs
_LEAST_TELLING = 1  # words beside the name
_NAME = r"(?-i:[A-Z][\w'’&-]*)"
_ASKS = re.compile(
    r"^(?:(?:ok|okay|and|oh|great|thanks|right|so|also|hi|hello|cool|by the way|btw)\b[,.! ]*)*"
    r"(?:what|what's|whats|when|where|which|who|how (?:much|many|long|often|far|old|early|late)|is"
    r"|are|does|do)\b",
    re.IGNORECASE,
)
_DEFINED = re.compile(
    r"\bthe (?:[\w-]+ ){1,6}(?:of|for|at|to|in|on|by) (?:(?!the\b)[\w-]+ ){0,2}"
    rf"(?:the )?{_NAME}|\bthe (?:[\w-]+ )?{_NAME}",
    re.IGNORECASE,
)
_POINTS = re.compile(r"(?<!\bis )(?<!\bare )\bthere\b|\b(?:the|here)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"\b(?:should|best|better|recommend\w*|suggest\w*|cheap\w*|good|worth|instead|mine|left|still"
    r"|yet|now|today|tomorrow|tonight)\b",
    re.IGNORECASE,
)
_WHERE_TO = re.compile(r"\b(?:to|from|in|via|near|with|by)(?: the)? \W*$", re.IGNORECASE)
_AT_HAND = re.compile(r"^(?:\w+[,.!]? )?(?:is|are|does|do|can)\b", re.IGNORECASE)


@lru_cache(maxsize=16_384)
def asks_by_name(text: str) -> bool:
    """Say whether a message asks for a fact of what it names, and nothing of the user's own."""
    plain = " ".join(normalise(text).split())
    if len(plain) > _MOST_READ or language_of(plain) == "zh" or not _ASKS.search(plain):
        return False
    lowers = {word.casefold() for word in WORD.findall(plain)}
    if not words_of("personal").isdisjoint(lowers) or _OPEN.search(plain):
        return False
    if _POINTS.search(_DEFINED.sub("", plain)):
        return False
    names = [token.surface for token in analyse(plain).tokens if token.name]
    telling = [token for token in analyse(plain).content if not (token.weak or token.name)]
    return len(telling) >= _LEAST_TELLING and any(_specifies(name, plain) for name in names)


def is_at_hand(text: str) -> bool:
    """Say whether a message asks for a yes or no, which may turn on what the user has chosen."""
    return bool(_AT_HAND.search(" ".join(normalise(text).split())))


def _specifies(name: str, plain: str) -> bool:
    """Say whether a name says whose a thing is, not merely where to, whence or by what means."""
    return any(
        has_name(place[0]) and not _WHERE_TO.search(plain[: place.start()])
        for place in re.finditer(rf"\b{re.escape(name)}\b", plain)
    )
