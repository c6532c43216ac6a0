"""Guards over the same words in other parts: who acts, what is counted, by which link, when. Pure.

All but Chinese tenses are English, and hold only where both texts have the same words else.
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.analysis import Analysis, Token
from semantic_layer.text.likeness import is_one_slip
from semantic_layer.text.script import fold, normalise, simplified
from semantic_layer.text.stemming import stem

_WORDS = re.compile(r"[a-z]+(?:'[a-z]+)?")
_CASES = (("i", "me"), ("we", "us"), ("he", "him"), ("they", "them"))
_FOR_ASKER = re.compile(
    r"\b(?:tell|give|show|help|let|teach|send|remind|advise|inform|guide|recommend|explain to|for) "
    r"(?:me|us)\b"
)
_ASKS_AT_ONCE = re.compile(r"\s*(?:who|what|which|when|where|why|how)\b")
_PASSIVE = re.compile(r"\b(?:am|are|was|were|be|been|being|get|got)\b")
_COUNTED = re.compile(r"\b(?:how (?:many|much)|which|what) ((?:[a-z-]+ ?){1,4})")
_AUXILIARY = frozenset({
    "is", "are", "am", "was", "were", "do", "does", "did", "can", "could", "will", "would",
    "should", "may", "might", "must", "shall", "has", "have", "had", "in", "on", "at", "of",
    "to", "for", "from", "with",
})  # fmt: skip
_LEAST_COVERED = 0.9


def cases(c: Comparison) -> Finding | None:
    """One who acts there suffers here ("whom can I sue", "who can sue me")."""
    if not _may_be_turned(c):
        return None
    for subject, thing in _CASES:
        one, other = (_cases_of(side, subject, thing) for side in (c.one, c.other))
        if {one, other} == {(subject,), (thing,)}:
            return difference(c, one, other)
    return None


def _may_be_turned(c: Comparison) -> bool:
    return (
        c.one.language == "en"
        and c.coverage >= _LEAST_COVERED
        and c.one.frame == c.other.frame
        and bool(c.one.frame)
        and not any(_PASSIVE.search(fold(side.text)) for side in (c.one, c.other))
    )


def _cases_of(side: Analysis, subject: str, thing: str) -> tuple[str, ...]:
    """Return which of the two forms of a pronoun a text has; those of the asking are none."""
    plain = normalise(side.text).casefold()
    if not _ASKS_AT_ONCE.match(plain):
        plain = _FOR_ASKER.sub(" ", plain)
    words = {word.partition("'")[0] for word in _WORDS.findall(plain)}
    return tuple(form for form in (subject, thing) if form in words)


def counted(c: Comparison) -> Finding | None:
    """What is counted or chosen from here is what it is counted for there."""
    if c.order == "same" or c.one.language != "en" or c.one.frame != c.other.frame:
        return None
    if c.coverage < _LEAST_COVERED:
        return None
    heads = [_head(side) for side in (c.one, c.other)]
    one, other = heads
    if not one or not other or one & other:
        return None
    shared_one = {c.one.tokens[pair.one].norm for pair in c.pairs}
    shared_other = {c.other.tokens[pair.other].norm for pair in c.pairs}
    return difference(c, one, other) if one <= shared_one and other <= shared_other else None


def _head(side: Analysis) -> frozenset[str]:
    """Return the words between "how many" and the verb."""
    found = _COUNTED.search(normalise(side.text).casefold())
    words = found[1].split() if found else []
    end = next((i for i, word in enumerate(words) if word in _AUXILIARY), len(words))
    return frozenset(stem(word) for word in words[:end]) if end < len(words) else frozenset()


def links(c: Comparison) -> Finding | None:
    """The same words are tied by another link ("in the box", "on the box")."""
    if c.one.language == "zh" or c.only_one or c.only_other or c.order != "same":
        return None
    one, other = unshared_links(c)
    if len(one) != 1 or len(other) != 1 or c.one.frame != c.other.frame:
        return None
    if not (_ASKS_WHO.match(normalise(c.one.text).casefold()) and c.one.frame in {"who", "what"}):
        return None
    if frozenset((one[0].norm, other[0].norm)) in _ALIKE and not _ACTS.match(c.one.text):
        return None
    return difference(c, [one[0].norm], [other[0].norm])


_ASKS_WHO = re.compile(r"(?:who|what(?:'s| is| are| was| were)) (?!you|do\b)\w+")


_ACTS = re.compile(
    r"who (?!is|are|was|were)\w+ (?:to|for|of|in|on|at|by|with|from|as) ", re.IGNORECASE
)


def unshared_links(c: Comparison) -> tuple[list[Token], list[Token]]:
    """Return the prepositions of each text without a counterpart."""
    used_one, used_other = {pair.one for pair in c.pairs}, {pair.other for pair in c.pairs}
    kinds = c.lexicon.classes.get("preposition", frozenset())
    return (
        [t for i, t in enumerate(c.one.tokens) if i not in used_one and t.norm in kinds],
        [t for i, t in enumerate(c.other.tokens) if i not in used_other and t.norm in kinds],
    )


def is_linked_alike(c: Comparison) -> bool:
    """Say whether no link stands where the other text has another."""
    one, other = unshared_links(c)
    return (
        not (one and other)
        or c.one.frame == "translate"
        or all(frozenset((a.norm, b.norm)) in _ALIKE for a in one for b in other)
    )


_ALIKE = frozenset({
    frozenset({"of", "in"}), frozenset({"in", "to"}),
    frozenset({"for", "to"}), frozenset({"of", "for"}),
    frozenset({"from", "off"}), frozenset({"out", "from"}), frozenset({"about", "on"}),
    frozenset({"as", "for"}), frozenset({"over", "across"}), frozenset({"by", "with"}),
})  # fmt: skip


def narrowed(c: Comparison) -> Finding | None:
    """Of a kind of thing it is asked what the other asks of all, or of the thing itself."""
    if c.one.language != "en" or c.order != "same" or c.one.frame != c.other.frame:
        return None
    ones, others = ({t.norm for t in only if not t.weak} for only in (c.only_one, c.only_other))
    if len(ones) == len(others) == 1:
        words = ones | others
        is_of_all = bool(words & _EVERY) and _stand_before_one(c)
        is_wider = bool(words & _KINDS) and not _RULED.isdisjoint(t.norm for t in c.one.tokens)
        return difference(c, ones, others) if is_of_all or is_wider else None
    is_added = len(ones) + len(others) == 1 and c.one.frame == "yesno"
    if not is_added or _RULED.isdisjoint(token.norm for token in c.one.tokens):
        return None
    if any(is_one_slip(word, link) for word in ones | others for link in _lone_links(c)):
        return None
    side = c.one if ones else c.other
    place = next(i for i, token in enumerate(side.tokens) if token.norm in ones | others)
    is_compound = (place == 0 or _is_word(side, place - 1)) and _is_word(side, place + 1)
    return difference(c, ones, others) if is_compound else None


def _lone_links(c: Comparison) -> list[str]:
    return [token.norm for side in unshared_links(c) for token in side]


_EVERY = frozenset({"all", "everi"})
_KINDS = frozenset(map(stem, (
    "pet", "animal", "alcohol", "vehicle", "meat", "fruit", "fish", "food",
)))  # fmt: skip
_RULED = frozenset(map(stem, (
    "legal", "illegal", "allowed", "permitted", "banned", "prohibited", "forbidden", "safe",
    "dangerous", "taxable", "taxed", "covered", "included", "insured", "free", "refundable",
    "deductible",
)))  # fmt: skip


def _is_word(side: Analysis, index: int) -> bool:
    return 0 <= index < len(side.tokens) and side.tokens[index].kind == "word"


def _stand_before_one(c: Comparison) -> bool:
    """Say whether the words left over stand right before the same word."""
    places = {pair.one: pair.other for pair in c.pairs}
    one = next(i for i, token in enumerate(c.one.tokens) if token in c.only_one)
    other = next(i for i, token in enumerate(c.other.tokens) if token in c.only_other)
    return places.get(one + 1) == other + 1


def article(c: Comparison) -> Finding | None:
    """Who the one is, is asked of any one of that kind ("who is the doctor", "who is a doctor")."""
    found = [_WHO_IS.match(normalise(side.text).casefold()) for side in (c.one, c.other)]
    one, other = (match[1] if match else "" for match in found)
    return difference(c, [one], [other]) if one and other and one != other else None


_WHO_IS = re.compile(r"who(?:'s| is| was| are| were) (the|an?) ")


def moment(c: Comparison) -> Finding | None:
    """What is asked of now is asked of then, and nothing else differs."""
    if c.one.language == "zh":
        return _chinese_moment(c)
    if c.one.frame != c.other.frame or c.order not in {"same", "moved"} or c.coverage < 1.0:
        return None
    one, other = (_tense(side) for side in (c.one, c.other))
    if not one or not other or one == other or _is_timeless(c.one) or _is_timeless(c.other):
        return None
    return difference(c, [one], [other])


def _tense(side: Analysis) -> str:
    """Return the tense of the verb that asks, "" when there is none."""
    words = _WORDS.findall(normalise(side.text).casefold().replace("'s ", " is "))
    if side.frame == "who" and "will" in words:
        return "later"
    return next((_TENSES[word] for word in words if word in _TENSES), "")


_TENSES = {
    **dict.fromkeys(("is", "are", "am", "does", "do"), "now"),
    **dict.fromkeys(("was", "were", "did"), "then"),
}
_TIMELESS = re.compile(
    r"\b(?:first|last|causes?|caused|reasons?|invent\w*|discover\w*|found\w*|author|wrote|written"
    r"|origin\w*|born|died?|nam(?:ed?|es)|call(?:ed)?|purpose|significance|importance|meaning|point"
    r"|wars?|battles?|movies?|films?|books?|novel|ago|yesterday|when|why|how|history|\d{2,4})\b"
)


def _is_timeless(side: Analysis) -> bool:
    """Say whether a matter is past or lasting whatever the tense, or a person alone is asked of."""
    plain = normalise(side.text).casefold()
    return bool(_TIMELESS.search(plain)) or (
        side.frame == "who" and " the " not in plain and all(token.name for token in side.content)
    )


_ZH_MOMENT = re.compile(r"曾经?|将[要会]?(?!军|来|近|就|领|士)|以前|从前|当时|原来的?")


def _chinese_moment(c: Comparison) -> Finding | None:
    """Find a word that sets one text in the past or the future, all other signs being equal."""
    plain = [simplified(normalise(side.text)).rstrip("?!。 ") for side in (c.one, c.other)]
    one, other = (_ZH_MOMENT.findall(text) for text in plain)
    if one == other or _ZH_MOMENT.sub("", plain[0]) != _ZH_MOMENT.sub("", plain[1]):
        return None
    return difference(c, one, other)
