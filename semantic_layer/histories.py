"""Whether two chats say the same before their last messages, as far as those need it. Pure."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.analysis import Token, analyse
from semantic_layer.chat import Chat
from semantic_layer.edits import Comparison, compare
from semantic_layer.outcome import Reason
from semantic_layer.script import language_of, normalise
from semantic_layer.small_talk import is_empty, sentences, words_of

Line = tuple[str, str]  # role, sentence


@dataclass(frozen=True, slots=True)
class Fit:
    """What two histories leave of a hit: at most ``score``, and why.

    ``texts`` are the two last messages as they are to be compared.
    """

    score: float
    reason: Reason
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """What two texts have apart: telling words of one only, and what they contradict each other in.

    ``shared`` counts the words of both.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    shared: int
    conflict: str = ""

    @property
    def is_none(self) -> bool:
        """Whether the two say the same."""
        return not (self.one or self.other or self.conflict)

    def __str__(self) -> str:
        sides = (" ".join(side[:4]) or "nothing" for side in (self.one, self.other))
        return self.conflict or " / ".join(sides)


def fit_of(asked: Chat, stored: Chat) -> Fit:
    """Say whether the stored chat's answer can be meant for the asked one's last message."""
    one, other = asked.dependence, stored.dependence
    if one.reply != other.reply:
        return _refused(asked, stored, f"{one.reply or 'no reply'} / {other.reply or 'no reply'}")
    texts = (one.reply, other.reply) if one.reply else (asked.text, stored.text)
    if _keys(asked) == _keys(stored):
        return Fit(1.0, Reason("history", "pass", "the same"), texts)
    if one.alone and other.alone:
        return _fit_alone(asked, stored)
    if one.alone or other.alone or not (asked.history and stored.history):
        return _refused(asked, stored, "only one message stands alone")
    return _fit_referring(asked, stored, texts)


def _fit_alone(asked: Chat, stored: Chat) -> Fit:
    clash = _other_ground(asked, stored)
    if clash:
        return _refused(asked, stored, clash, check="conversation")
    return Fit(1.0, Reason("conversation", "pass", "stands alone"), (asked.text, stored.text))


def _fit_referring(asked: Chat, stored: Chat, texts: tuple[str, str]) -> Fit:
    offer = difference(asked.offer, stored.offer)
    if not offer.is_none:
        return _refused(asked, stored, f"the assistant said another thing: {offer}")
    for role, name in (("user", "the user"), ("assistant", "the assistant before")):
        left = _left(asked, stored, role)
        said = difference(*left)
        if not said.is_none:
            return _refused(asked, stored, f"{name} said another thing: {said}")
    dependence = asked.dependence
    detail = f"refers to the same ({dependence.kind}: {dependence.detail})"
    return Fit(1.0, Reason("history", "pass", detail), texts)


def _refused(asked: Chat, stored: Chat, detail: str, check: str = "history") -> Fit:
    return Fit(0.0, Reason(check, "veto", detail[:200]), (asked.text, stored.text))


def difference(one: str, other: str) -> Difference:
    """Compare what two texts tell, in whatever order they tell it."""
    if normalise(one).casefold() == normalise(other).casefold():
        return Difference((), (), len(analyse(one).content))
    c = compare(analyse(one), analyse(other))
    return Difference(_telling(c.only_one), _telling(c.only_other), c.num_matched, _conflict(c))


def _telling(tokens: Iterable[Token]) -> tuple[str, ...]:
    light = words_of("light")
    return tuple(t.surface or t.norm for t in tokens if not t.weak and t.norm not in light)


def _conflict(c: Comparison) -> str:
    """Name what two texts contradict each other in: a number, a denial, an opposite."""
    if c.one.language != c.other.language:
        return f"{c.one.language} / {c.other.language}"
    one, other = Counter(c.one.numbers), Counter(c.other.numbers)
    if one != other:
        return f"{' '.join(one - other) or 'nothing'} / {' '.join(other - one) or 'nothing'}"
    if c.one.codes != c.other.codes:
        return "code or addresses"
    if c.one.num_negations != c.other.num_negations:
        return f"{c.one.num_negations} / {c.other.num_negations} negations"
    ones, others = c.only_marks()
    for a in sorted({t.norm for t in c.only_one} | ones):
        for b in sorted({t.norm for t in c.only_other} | others):
            shared = c.lexicon.shared_set(a, b) and not c.lexicon.are_synonyms(a, b)
            if shared or c.lexicon.are_opposites(a, b):
                return f"{a} / {b}"
    return ""


def _left(one: Chat, other: Chat, role: str) -> tuple[str, str]:
    """Return what each chat has beside the sentences of both, and beside the last offer."""
    a, b = _lines(one, role), _lines(other, role)
    shared = Counter(map(_key, a)) & Counter(map(_key, b))
    return _without(a, shared), _without(b, shared)


def _lines(chat: Chat, role: str) -> list[str]:
    history = chat.history
    if role == "assistant":
        last = max((i for i, said in enumerate(history) if said[0] == role), default=0)
        history = history[:last]
    return [
        part for by, text in history if by == role for part in sentences(text) if not is_empty(part)
    ]


def _without(lines: Iterable[str], shared: Counter[str]) -> str:
    budget = Counter(shared)
    left = []
    for line in lines:
        key = _key(line)
        if budget[key]:
            budget[key] -= 1
        else:
            left.append(line)
    return " ".join(left)


def _key(text: str) -> str:
    return normalise(text).casefold().strip(" .!?,。！？，")


def _keys(chat: Chat) -> list[Line]:
    return [(role, _key(text)) for role, text in chat.history]


_OURS = re.compile(r"\b(?:you|your|yours|here|we|our)\b", re.IGNORECASE)
_DEFINITE = re.compile(r"\bthe\b(?!.*\b(?:of|for|to|between|in)\b)", re.IGNORECASE)
_PLACE_ZH = re.compile(
    r"([\u4e00-\u9fff]{2})(公司|银行|酒店|宾馆|医院|诊所|健身房|超市|商店|学校|大学|航空|餐厅|影院|博物馆|图书馆|平台)"
)


def _other_ground(asked: Chat, stored: Chat) -> str:
    """Say by what names two chats are about other companies, shops or places, if they are."""
    if language_of(asked.text) == "zh":
        return _other_place_zh(asked, stored)
    if not any(p.search(chat.text) for p in (_OURS, _DEFINITE) for chat in (asked, stored)):
        return ""
    one, other = _names(asked), _names(stored)
    if not one.isdisjoint(other) or not (one or other):
        return ""
    if asked.grounded and stored.grounded and not (one and other):
        return ""
    return f"about {'/'.join(sorted(one)) or 'nobody'} / {'/'.join(sorted(other)) or 'nobody'}"


def _names(chat: Chat) -> set[str]:
    """Return the names in a chat, its last message included, in lower case."""
    texts = [*(text for _, text in chat.history), chat.text]
    return {
        token.surface.casefold()
        for text in texts
        for part in sentences(text)
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
    for text in (*(text for _, text in chat.history), chat.text):
        for name, kind in _PLACE_ZH.findall(text):
            found.setdefault(kind, set()).add(name)
    return found
