"""Cut English words to a common form, so that inflection does not count as a difference. Pure."""

import re
from functools import lru_cache

_IRREGULAR = {
    "children": "child", "men": "man", "women": "woman", "feet": "foot", "teeth": "tooth",
    "mice": "mouse", "people": "person", "went": "go", "gone": "go", "bought": "buy",
    "sold": "sell", "sent": "send", "paid": "pay", "made": "make", "lost": "lose", "won": "win",
    "got": "get", "gave": "give", "given": "give", "took": "take", "taken": "take",
    "wrote": "write", "written": "write", "knew": "know", "known": "know", "found": "find",
    "left": "left", "kept": "keep", "built": "build", "broke": "break", "broken": "break",
    "began": "begin", "begun": "begin", "chose": "choose", "chosen": "choose", "ate": "eat",
    "eaten": "eat", "drank": "drink", "drunk": "drunk", "ran": "run", "saw": "saw", "seen": "see",
    "said": "say", "told": "tell", "thought": "think", "taught": "teach", "caught": "catch",
    "brought": "bring", "became": "become", "held": "hold", "met": "meet", "led": "lead",
    "spent": "spend", "spoke": "speak", "spoken": "speak", "stole": "steal", "stolen": "steal",
    "died": "die", "dying": "die", "dies": "die", "lying": "lie", "tying": "tie", "ties": "tie",
    "movies": "movie", "cookies": "cookie", "news": "news", "does": "do", "used": "use",
    "less": "less", "these": "this", "getting": "get", "this": "this", "lives": "live",
    "knives": "knife", "wives": "wife",
    "leaves": "leave", "wolves": "wolf", "shelves": "shelf", "data": "data", "series": "series",
}  # fmt: skip
_BRITISH = (
    (re.compile(r"(?<=[a-z]{2})our(?=(s|ed|ing|ite|ful|able)?$)"), "or"),
    (re.compile(r"(?<=[a-z]{3})is(?=(e|es|ed|ing|ation|ations)$)"), "iz"),
    (re.compile(r"^(cent|lit|met|theat|fib|kilomet|centimet|millimet|millilit)re(s?)$"), r"\1er\2"),
    (re.compile(r"ogue(s?)$"), r"og\1"),
    (re.compile(r"^(cheq)ue(s?)$"), r"check\2"),
    (re.compile(r"^licence"), "license"),
    (re.compile(r"^(gr)ey$"), r"\1ay"),
    (re.compile(r"^tyre(s?)$"), r"tire\1"),
    (re.compile(r"^(kerb)(s?)$"), r"curb\2"),
    (re.compile(r"^aluminium$"), "aluminum"),
    (re.compile(r"^pyjamas$"), "pajamas"),
    (re.compile(r"^(jewel)lery$"), r"\1ry"),
    (re.compile(r"^programme(s?)$"), r"program\1"),
    (re.compile(r"^(practi)s(?=(e|es|ed|ing)$)"), r"\1c"),
)
_VOWEL = re.compile(r"[aeiouy]")
_KEPT_OUR = frozenset({"hour", "hours", "your", "four", "tour", "tours", "pour", "sour", "flour",
                       "our", "course", "source", "court", "journey"})  # fmt: skip
_SHORT = 3
_LONG = 6


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the form that the inflections of a lower-case word share."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= _SHORT or not word.isascii() or not word.isalpha():
        return word
    if word not in _KEPT_OUR:
        for pattern, replacement in _BRITISH:
            word = pattern.sub(replacement, word)
    return _IRREGULAR.get(word) or _bare(_singular(word))


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > len("ties"):
        return word[:-3] + "y"
    if re.search(r"(ss|x|ch|sh|zz|o)es$", word):
        return word[:-2]
    if word.endswith("s") and not re.search(r"(ss|us|is)$", word):
        return word[:-1]
    return word


def _bare(word: str) -> str:
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) >= _SHORT and _VOWEL.search(root):
            if root[-1] == root[-2] and root[-1] not in "lsz":
                root = root[:-1]
            word = root
            break
    if word.endswith("ll") and len(word) >= _LONG:
        word = word[:-1]
    if word.endswith("e") and not word.endswith("ee") and len(word) > _SHORT:
        word = word[:-1]
    return word[:-1] + "i" if word.endswith("y") and len(word) > _SHORT else word


def is_past_of(past: str, present: str) -> bool:
    """Say whether two inflections of one verb are "won" and "wins"."""
    return present.endswith("s") and not present.endswith("ss") and is_past(past)


def is_past(word: str) -> bool:
    """Say whether an inflected verb tells of what is over."""
    return word.endswith("ed") or (word in _IRREGULAR and word[-1] not in "sg")
