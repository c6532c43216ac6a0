"""Guards over texts that are themselves what is asked about: spelled, counted, corrected. Pure."""

import re
from functools import lru_cache

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.comparison.handled import as_words, handled
from semantic_layer.text.likeness import is_one_slip
from semantic_layer.text.script import normalise, simplified

_OF_LETTERS = re.compile(
    r"\b(?:letters (?:are |is )?in|letter in|characters in|vowels?|consonants?|syllables?|hyphens?"
    r"|commas?|apostrophes?|spell(?:ed|ing|s)?|spelt|rhymes?|plural|past tense|anagrams?"
    r"|palindromes?|pronounced?|how many (?:words|letters|characters|spaces)|count the \w+"
    r"|one word|two words|write [^\s\w]?\w{1,2}(?=[^\s\w]*$))\b|字母|拼写|怎么拼|几个字|笔画"
)
_OF_CASE = re.compile(
    r"\b(?:ascii|unicode|md5|sha-?\d*|hash of|base64|upper ?case|lower ?case|capitali[sz]\w*"
    r"|repeat after|echo|full-?width|half-?width|punctuation)\b|全角|半角|大写|小写|跟我念"
)
_OF_SCRIPT = re.compile(r"\b(?:simplified|traditional)\b|繁体|简体|繁體|簡體|異體|异体")
_OF_SIGNS = re.compile(
    r"\b(?:fix|correct(?:ed|ly)?|proofread|check|edit|reverse|repeat|echo|count|punctuat\w+|grammar"
    r"|grammatical\w*|right|wrong|mistakes?|errors?)\b|对吗|正确吗|通顺|病句|语法|标点|倒过来|反过来"
)
_QUOTED = re.compile(
    r"[\"“”«»「」『』]([^\"“”«»「」『』\n]{1,400})[\"“”«»「」『』]|(?<!\w)['‘]([^'‘’\n]{1,200})['’](?!\w)"
)
_INDENT = re.compile(r"^[ \t]*(?=\S)", re.MULTILINE)
_POSSESSIVE = re.compile(r"\b([a-z]{2,})'s\b|\b([a-z]{2,}s)'(?!\w)")


def literal(c: Comparison) -> Finding | None:
    """What is to be spelled, counted or corrected is not the same in every sign."""
    one, other = c.one.text, c.other.text
    found = _handled_otherwise(one, other) or _quoted_otherwise(c)
    if found is not None:
        return difference(c, [found[0]], [found[1]])
    if _is_of_script(one) and _unscripted(one) == _unscripted(other):
        return difference(c, [one], [other]) if _typed(one) != _typed(other) else None
    return _respelt(c) if _is_of_letters(one) and _is_of_letters(other) else None


def _respelt(c: Comparison) -> Finding | None:
    """Find a word that is spelled in two ways, or one letter in two cases."""
    for pair in c.pairs:
        a, b = (t.surface for t in (c.one.tokens[pair.one], c.other.tokens[pair.other]))
        if _OF_LETTERS.search(a.casefold()) or not (a and b):
            continue
        is_letter = len(a) == 1 and _OF_CASE.search(c.one.text.casefold())
        if a.lower() != b.lower() or (is_letter and a != b):
            return difference(c, [a], [b])
    if len(c.only_one) == len(c.only_other) == 1:
        return difference(c, [c.only_one[0].norm], [c.only_other[0].norm])
    last = [_LAST_LETTER.search(side.text) for side in (c.one, c.other)]
    letters = [match[1] if match else "" for match in last]
    is_turned = letters[0] != letters[1] and letters[0].lower() == letters[1].lower()
    return difference(c, letters[:1], letters[1:]) if is_turned else None


_LAST_LETTER = re.compile(r"\W([A-Za-z])\W*$")


def spacing(c: Comparison) -> Finding | None:
    """Lines of code begin further in, which tells what belongs together."""
    one, other = (_indents(side.text) for side in (c.one, c.other))
    if one == other or not (one and other):
        return None
    return difference(c, [f"indents {one}"], [f"indents {other}"])


def possessive(c: Comparison) -> Finding | None:
    """One owner became many ("the dog's", "the dogs'")."""
    for pair in c.pairs if c.one.frame in _ASKING_ONE else ():
        a, b = (t.surface for t in (c.one.tokens[pair.one], c.other.tokens[pair.other]))
        if a.casefold() != b.casefold() and a.isascii():
            here, there = (_owners(side.text) for side in (c.one, c.other))
            if a.casefold() in here and b.casefold() in there:
                return difference(c, [a], [b])
    one, other = (_owners(side.text) for side in (c.one, c.other))
    both = {f"{name}s" for name in one} & other | {f"{name}s" for name in other} & one
    return difference(c, one, other) if both - (one & other) else None


def is_same_text(one: str, other: str) -> bool:
    """Say whether two texts differ at most in how they are typed, none of which they ask about."""
    if one == other:
        return True
    if normalise(one) != normalise(other) or _indents(one) != _indents(other):
        return False
    return _quoted(one) == _quoted(other) and _handled_otherwise(one, other) is None


def _owners(text: str) -> frozenset[str]:
    found = _POSSESSIVE.findall(normalise(text).casefold())
    return frozenset(one or many for one, many in found if (one or many) not in _IS)


_ASKING_ONE = frozenset({"who", "which", "whose"})
_IS = frozenset(
    ["what", "who", "where", "when", "how", "it", "he", "she", "that", "there", "here", "let"]
)


def _indents(text: str) -> tuple[int, ...]:
    """Return how far in each line begins, less what all do; () when none begins further in."""
    if "\n" not in text:
        return ()
    depths = [len(m[0].expandtabs(4)) for m in _INDENT.finditer(text)]
    least = min(depths[1:] or [0])
    return (
        tuple(depth - least for depth in depths[1:]) if any(d > least for d in depths[1:]) else ()
    )


def _handled_otherwise(one: str, other: str) -> tuple[str, str] | None:
    """Return what each text asks to be handled, where it is not the same."""
    here, there = handled(one), handled(other)
    if here is None or there is None or here == there:
        return None
    is_of_signs = _is_of_signs(one) and _is_of_signs(other)
    return (here, there) if is_of_signs or as_words(here) != as_words(there) else None


def _quoted_otherwise(c: Comparison) -> tuple[str, str] | None:
    """Return what each text quotes, where it is not the same, nor misspelt in one of them."""
    here, there = _quoted(c.one.text), _quoted(c.other.text)
    if here and there and here != there:
        return " ".join(here), " ".join(there)
    one, other = " ".join(c.one.quotes), " ".join(c.other.quotes)
    if not (one and other) or one == other or len(c.one.quotes) != len(c.other.quotes):
        return None
    is_title = one.removeprefix("the ") == other.removeprefix("the ") and not handled(c.one.text)
    is_misspelt = c.count("typo") > 0 and is_one_slip(one, other)
    return None if is_title or is_misspelt else (one, other)


def _quoted(text: str) -> tuple[str, ...] | None:
    """Return what is quoted, sign by sign, where a text asks of signs."""
    if not _is_of_signs(text) and not _is_of_script(text):
        return None
    found = tuple(sorted(one or other for one, other in _QUOTED.findall(text)))
    return found or None


@lru_cache(maxsize=4096)
def _is_of_signs(text: str) -> bool:
    plain = text.casefold()
    return any(cue.search(plain) for cue in (_OF_LETTERS, _OF_CASE, _OF_SIGNS))


@lru_cache(maxsize=4096)
def _is_of_letters(text: str) -> bool:
    plain = text.casefold()
    return bool(_OF_LETTERS.search(plain) or _OF_CASE.search(plain))


@lru_cache(maxsize=4096)
def _is_of_script(text: str) -> bool:
    return bool(_OF_SCRIPT.search(text.casefold()))


def _unscripted(text: str) -> str:
    return simplified(_typed(text))


def _typed(text: str) -> str:
    return normalise(text).casefold().strip(" ?!。")
