"""What the last message of a chat needs from the messages before it. Pure.

Judges one chat by itself; knows no stored answers. What it can't tell alone counts as dependent:
that costs a hit, never an answer.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal

from semantic_layer.chats.organisation import without_us
from semantic_layer.chats.premises import asks_provider, premises_of
from semantic_layer.chats.small_talk import (
    ENDS_ASKING,
    WORD,
    Reply,
    reply_of,
    sentences,
    words_of,
)
from semantic_layer.chats.subjects import names_subject
from semantic_layer.chats.told import (
    is_of_oneself_zh,
    tells_of_us,
    turns_on_user,
    turns_on_user_zh,
)
from semantic_layer.text.analysis import Analysis, analyse
from semantic_layer.text.script import language_of, normalise, simplified
from semantic_layer.text.stemming import stem

Kind = Literal[
    "alone", "reply", "pronoun", "opening", "answer", "relation", "short", "mention", "personal",
    "premise",
]  # fmt: skip

_ALONE_WORDS = 3
_NAMED_WORDS = 2
_ALONE_SIGNS = 5
_MOST_DETAIL = 60  # characters


@dataclass(frozen=True, slots=True)
class Dependence:
    """Whether a message stands alone, and the word or trait that says otherwise.

    ``reply`` is a bare yes or no, ``answer`` a statement that needs the question before it,
    ``relation`` a fee or an example of nothing named, ``personal`` a question whose answer turns on
    what the user told of himself, ``premise`` one that is whole after what may bear on any answer.
    """

    kind: Kind
    detail: str = ""
    reply: Reply = ""

    @property
    def alone(self) -> bool:
        """Whether nothing before the message matters."""
        return self.kind == "alone"


def dependence_of(
    text: str, history: Sequence[tuple[str, str]], *, documented: bool = False
) -> Dependence:
    """Say what the last message needs of ``history``, (role, text) of each message before it.

    ``documented`` tells that the answer rests on named documents.
    """
    plain = normalise(text)
    reply = reply_of(plain) or _taken_up(plain, history)
    if reply:
        return Dependence("reply", reply, reply)
    is_chinese = language_of(plain) == "zh"
    lowers = [word.casefold() for word in WORD.findall(plain)]
    message = _Message(plain, lowers, analyse(plain), history, documented)
    for kind, find in (_CHINESE if is_chinese else _ENGLISH).items():
        detail = find(message)
        if detail:
            return Dependence(kind, detail)
    premise = next(iter(premises_of(text, history)), "")
    return Dependence("premise", premise[:_MOST_DETAIL]) if premise else Dependence("alone")


def _taken_up(plain: str, history: Sequence[tuple[str, str]]) -> Reply:
    """Read "yes, book it" as a yes when all it says beside is what was offered."""
    lowers = [word.casefold() for word in WORD.findall(plain)]
    if not lowers or lowers[0] not in words_of("accept") or ENDS_ASKING.search(plain):
        return ""
    offered = next((said for role, said in reversed(history) if role == "assistant"), "")
    if not ENDS_ASKING.search(offered):
        return ""
    known = {word.casefold() for word in WORD.findall(sentences(offered)[-1])}
    rest = set(lowers) - words_of("reply") - known
    return "yes" if len(lowers) <= _MOST_TAKEN_UP and rest <= words_of("pronoun") else ""


_MOST_TAKEN_UP = 8  # words


@dataclass(frozen=True, slots=True)
class _Message:
    plain: str
    lowers: list[str]
    analysis: Analysis
    history: Sequence[tuple[str, str]]
    documented: bool


def _pointer(message: _Message) -> str:
    """Return the first word that points back, "" when there is none."""
    lowers = message.lowers
    points = (word for i, word in enumerate(lowers) if _points(word, lowers, i))
    found = next(points, "")
    return "" if found in _WITHIN and _NAMED_BEFORE.search(message.plain) else found


# "Are your tickets mobile only, or can I print them?": what is meant stands before, in the message.
_WITHIN = frozenset({"it", "them", "they"})
_NAMED_BEFORE = re.compile(
    r"^(?:is|are|do|does|can|if|when|how)\b.*\b(?:your|an?|any|my) [a-z].*[,;]?"
    r"\b(?:or|and|if|before|when|after)\b(?:(?!\b(?:this|that|these|those|there)\b).)*"
    r"\b(?:it|them|they)\b",
    re.IGNORECASE,
)


def _points(word: str, lowers: list[str], i: int) -> bool:
    before = lowers[i - 1] if i else ""
    after = lowers[i + 1] if i + 1 < len(lowers) else ""
    if word in words_of("pronoun"):
        return not _is_empty_pronoun(word, lowers, i)
    if word in words_of("comparative"):
        return "than" not in lowers[i:]
    if word in {"one", "ones"}:
        return not after or before in _BEFORE_ONE or before in words_of("ordinal")
    return (
        word in words_of("relative")
        or (word == "then" and not after)
        or (word == "which" and after in _AUXILIARIES)
        or (word == "there" and not {before, after} & _THERE_IS)
    )


_BEFORE_ONE = frozenset({"the", "which", "this", "that"})
_AUXILIARIES = frozenset(
    {"is", "are", "was", "do", "does", "did", "can", "should", "would", "will", "has", "have"}
)
_THERE_IS = frozenset(
    {"is", "are", "was", "were", "will", "be", "been", "has", "have", "isn't", "aren't"}
)


def _is_empty_pronoun(word: str, lowers: list[str], i: int) -> bool:
    """Say whether "it", "this" or "that" points at nothing said before."""
    before = lowers[i - 1] if i else ""
    after = lowers[i + 1 : i + 2]
    if word in {"it", "it's"}:
        rest = lowers[i + 1 : i + 4]
        takes = "take" in lowers[max(0, i - 1) : i + 4] or "takes" in lowers
        is_takes = takes and "to" in lowers[i + 1 :] and "long" in lowers[:i]
        is_stated = bool(words_of("expletive_after") & set(rest)) and (
            "to" in lowers[i:] or "that" in lowers[i:] or "if" in lowers[i:]
        )
        return is_takes or is_stated
    if word in {"this", "these", "that"} and after and after[0] in words_of("deictic"):
        return word == "this"
    if word == "that":
        is_joining = after and after[0] in _AFTER_JOINING
        return bool(is_joining and before not in _BEFORE_POINTING and i > 0)
    return False


_AFTER_JOINING = frozenset(
    {"i", "you", "he", "she", "we", "they", "the", "a", "an", "is", "are", "has", "have", "can",
     "was", "were", "will", "do", "does", "my", "your", "no", "all"}
)  # fmt: skip
_BEFORE_POINTING = frozenset(
    {"is", "was", "does", "do", "did", "can", "will", "would", "like", "and", "but", "if", "about",
     "with", "for", "of", "to", "at", "on", "in", "after", "before", "what", "why", "how"}
)  # fmt: skip


def _opening(message: _Message) -> str:
    """Return the words by which a message goes on from the one before."""
    lowers = message.lowers
    if lowers and lowers[0] in words_of("opening"):
        return lowers[0]
    first = " ".join(lowers[:2])
    return first if first in {"what about", "how about", "why not", "what if"} else ""


def _statement(message: _Message) -> str:
    """Say that a message asks and orders nothing by itself."""
    lowers = message.lowers
    asks = bool(ENDS_ASKING.search(message.plain)) or message.analysis.frame
    orders = bool(lowers) and lowers[0] in words_of("imperative")
    wishes = bool(set(lowers[:5]) & words_of("wish")) and len(lowers) > _ALONE_WORDS + 1
    return "" if asks or orders or wishes else "asks nothing"


def _open_relation(message: _Message) -> str:
    """Return a word such as "example" or "fee" that does not say of what."""
    lowers = message.lowers
    for i, word in enumerate(lowers):
        if word in words_of("relational"):
            rest = lowers[i + 1 :]
            named = set(lowers[:i]) - _DETERMINERS - words_of("reply") - _ASKING_WORDS
            if words_of("complement").isdisjoint(rest) and len(named) < _NAMED_WORDS:
                return word
    return ""


_DETERMINERS = frozenset({"the", "a", "an", "my", "your", "any", "some", "all", "every", "each"})
_ASKING_WORDS = frozenset(
    {"what", "what's", "which", "how", "much", "many", "is", "are", "was", "does", "do", "give",
     "tell", "show", "me", "you", "need", "have", "there", "get", "i", "we", "exact", "daily"}
)  # fmt: skip


def _shortness(message: _Message) -> str:
    if names_subject(message.plain):
        return ""
    content = [token for token in message.analysis.content if not token.weak]
    num_words = sum(len(token.norm.split()) for token in content)
    enough = _NAMED_WORDS if any(token.name for token in content) else _ALONE_WORDS
    return f"{num_words} telling words" if num_words < enough else ""


def _mentioned(message: _Message) -> str:
    """Return what "the" points at when the history speaks of it, and not as part of a name."""
    tokens = message.analysis.tokens
    pointed = {stem(word) for the, word in pairwise(message.lowers) if the in {"the", "my"}}
    wanted = {token.norm for token in tokens if token.norm in pointed and not token.name}
    if not wanted or any(token.name for token in tokens):
        return ""
    starts = tuple(norm[:_START] for norm in wanted)
    said = (text for _, text in message.history if any(s in text.casefold() for s in starts))
    found = (token for text in said for token in analyse(text).tokens if token.norm in wanted)
    return next((token.surface for token in found if not token.name), "")


_START = 3  # letters that forms of a word have in common


def _found_zh(name: str) -> Callable[[_Message], str]:
    """Make a check for any word of a class, the longest first."""

    def find(message: _Message) -> str:
        plain = message.plain
        for word in _by_length("not_pointing"):
            plain = plain.replace(word, "")
        return next((word for word in _by_length(name) if word in plain), "")

    return find


def _opening_zh(message: _Message) -> str:
    plain = message.plain
    if plain.rstrip("?？。!！ ").endswith("呢"):
        return "呢"
    return next((word for word in _by_length("opening") if plain.startswith(word)), "")


def _statement_zh(message: _Message) -> str:
    has_mark = bool(ENDS_ASKING.search(message.plain))
    asks = has_mark or bool(_ASKS_ZH.search(simplified(message.plain)) or message.analysis.frame)
    return "" if asks or message.plain.startswith(_ORDERS_ZH) else "asks nothing"


# Questions are often typed without a mark.
_ASKS_ZH = re.compile(
    r"几(?!乎|个都|天都)|多(?:少|大|长|高|远|久|重|快)|谁|什么(?!都|也)|吗|怎么|咋|如何|哪(?!怕|都)|([能可会要是])不\1|有没有"
)
_ORDERS_ZH = ("请", "帮", "翻译", "写", "解释", "介绍", "列出", "告诉", "我想", "我要")


def _shortness_zh(message: _Message) -> str:
    """Count what tells: characters that do not only ask or tie, other words double."""
    plain = message.plain
    if names_subject(plain):
        return ""
    signs = sum(sign not in _EMPTY_ZH for sign in _HAN.findall(plain)) + 2 * len(message.lowers)
    enough = _ALONE_SIGNS - bool(_OF_ZH.search(plain))
    return f"{signs} telling signs" if signs < enough else ""


def _turns_on_user_zh(message: _Message) -> str:
    """Say so when the answer may turn on what the user told: not a rule of a provider's own."""
    is_way = "咋" in message.plain
    if asks_provider(message.plain) and not (is_way or is_of_oneself_zh(message.plain)):
        return ""
    return turns_on_user_zh(_of_user(message), message.history)


_HAN = re.compile(r"[\u3400-\u9fff]")
_OF_ZH = re.compile(r"[\u3400-\u9fff]{2}的[\u3400-\u9fff]{2}")
_EMPTY_ZH = frozenset(
    "的是吗呢了哪里儿什么怎样为请问我你您们在有要不能可以多少几谁和与就也还吧啊会到得着过想知道"
)


def _of_user(message: _Message) -> str:
    """Return the message as far as it speaks of the user, not of whom the documents are about."""
    are_others = message.documented and not tells_of_us(message.history)
    return without_us(message.plain) if are_others else message.plain


@cache
def _by_length(name: str) -> tuple[str, ...]:
    return tuple(sorted(words_of(name, "zh"), key=len, reverse=True))


_Check = Callable[[_Message], str]
_ENGLISH: dict[Kind, _Check] = {
    "pronoun": _pointer,
    "opening": _opening,
    "answer": _statement,
    "relation": _open_relation,
    "short": _shortness,
    "mention": _mentioned,
    "personal": lambda message: turns_on_user(_of_user(message), message.history),
}
_CHINESE: dict[Kind, _Check] = {
    "pronoun": _found_zh("pronoun"),
    "relation": _found_zh("relative"),
    "opening": _opening_zh,
    "answer": _statement_zh,
    "short": _shortness_zh,
    "personal": _turns_on_user_zh,
}
