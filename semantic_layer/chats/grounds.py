"""Which company, shop or place a chat is about, for messages that name none themselves. Pure."""

import re

from semantic_layer.chats.chat import Chat
from semantic_layer.chats.small_talk import sentences, words_of
from semantic_layer.chats.subjects import names_subject
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of

_OURS = re.compile(r"\b(?:you|your|yours|here|we|our)\b", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"(?:\b[A-Z][\w']*\s+)+(?:Street|St|Road|Rd|Lane|Avenue|Ave|Drive|Close|Crescent|Court|Row)\b"
    r"|\b(?:\w+ > )+\w+|\b(?:Boxing|Christmas|New Year's|Easter) (?:Day|Monday|Eve)\b"
    r"|\b[A-Z0-9]{1,3}\b"
)
_CAPITAL = re.compile(r"[^\W\d_a-z]")  # a name has one; so do scripts without small letters
_TELLING_WORDS = 3
_PLACE_ZH = re.compile(
    r"([\u4e00-\u9fff]{2})"
    r"(公司|银行|酒店|宾馆|医院|诊所|健身房|超市|商店|学校|大学|航空|餐厅|影院|博物馆|图书馆|平台)"
)


def other_ground(asked: Chat, stored: Chat) -> str:
    """Say by what names two chats are about other companies, shops or places, if they are."""
    if language_of(asked.text) == "zh":
        return _other_place_zh(asked, stored)
    if not any(_OURS.search(c.text) or not names_subject(c.text) for c in (asked, stored)):
        return ""
    one, other = _names(asked), _names(stored)
    if not one.isdisjoint(other) or not (one or other):
        return ""
    if not (one and other) and ((asked.grounded and stored.grounded) or _tells_enough(asked)):
        return ""
    return f"about {'/'.join(sorted(one)) or 'nobody'} / {'/'.join(sorted(other)) or 'nobody'}"


def _texts(chat: Chat) -> list[str]:
    return [*(text for _, text in chat.history), chat.text]


def _tells_enough(chat: Chat) -> bool:
    """Say whether a message names its matter so well that who is asked needs no name."""
    content = [token for token in analyse(chat.text).content if not token.weak]
    return len({token.norm for token in content}) >= _TELLING_WORDS


def _names(chat: Chat) -> set[str]:
    """Return the names in a chat, its last message included, in lower case.

    No addresses, no feasts, no places of a menu ("Pay > Documents").
    """
    return {
        token.surface.casefold()
        for text in _texts(chat)
        for part in sentences(_ELSEWHERE.sub(" ", text))
        if _CAPITAL.search(part)
        for token in analyse(part).tokens
        if token.name and token.surface.casefold() not in words_of("deictic")
    }


def _other_place_zh(asked: Chat, stored: Chat) -> str:
    one, other = _places(asked), _places(stored)
    for kind in sorted(one.keys() & other.keys()):
        if one[kind].isdisjoint(other[kind]):
            return f"{'/'.join(sorted(one[kind]))} / {'/'.join(sorted(other[kind]))}"
    return ""


def _places(chat: Chat) -> dict[str, set[str]]:
    """Return the names that stand before each kind of place."""
    found: dict[str, set[str]] = {}
    for text in _texts(chat):
        for name, kind in _PLACE_ZH.findall(text):
            found.setdefault(kind, set()).add(name)
    return found
