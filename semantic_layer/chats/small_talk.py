"""What of a chat an answer can't turn on: small talk; and what is a bare yes or no. Pure."""

import re
from functools import cache, lru_cache
from typing import Literal

from semantic_layer.resources import load_lines
from semantic_layer.text.analysis import analyse
from semantic_layer.text.script import language_of, normalise

Reply = Literal["", "yes", "no"]

WORD = re.compile(r"[a-zA-Z0-9']+(?:[.:,/-][a-zA-Z0-9]+)*")
ENDS_ASKING = re.compile(r"[?？]\W*$")
CLAUSE_ENDS = re.compile(r"[，。！？、；：,.!?;:\s~～]+")
_GREETS = re.compile(
    r"(?:hi|hiya|hello|hey|dear|thanks|thank|cheers|bye|goodbye|good|welcome|sorry)\b",
    re.IGNORECASE,
)
_MOST_REPLY_WORDS = 12


@cache
def words_of(name: str, language: str = "en") -> frozenset[str]:
    """Return a class of words of the conversation, as written."""
    for line in load_lines(f"dialogue.{language}.txt"):
        key, _, words = line.partition(":")
        if key == name:
            return frozenset(words.split())
    raise KeyError(name)


def reply_of(text: str) -> Reply:
    """Read a bare acceptance or refusal; "" for everything else."""
    plain = normalise(text).casefold()
    if language_of(plain) == "zh":
        return _reply_zh(plain)
    words = WORD.findall(plain)
    if not words or len(words) > _MOST_REPLY_WORDS or ENDS_ASKING.search(plain):
        return ""
    if not words_of("reply").issuperset(words):
        return ""
    if not {"no", "nope", "nah"}.isdisjoint(words):
        return "no" if words_of("accept").isdisjoint(words) else ""
    accepts = not words_of("accept").isdisjoint(words) or "go ahead" in plain or "do it" in plain
    return "yes" if accepts or words == ["please"] else ""


def _reply_zh(plain: str) -> Reply:
    clauses = [clause for clause in CLAUSE_ENDS.split(plain) if clause]
    left = [clause for clause in clauses if clause not in words_of("filler", "zh")]
    stripped = {_bare_zh(clause) for clause in left} - {""}
    if not stripped or ENDS_ASKING.search(plain):
        return ""
    if stripped <= words_of("accept", "zh"):
        return "yes"
    return "no" if stripped <= words_of("decline", "zh") else ""


def _bare_zh(clause: str) -> str:
    """Cut what only softens a yes or no off its end ("好的呀谢谢")."""
    known = words_of("accept", "zh") | words_of("decline", "zh")
    while clause and clause not in known:
        ending = next((f for f in words_of("filler", "zh") if clause.endswith(f)), None)
        start = next((f for f in ("那就", "那", "就") if clause.startswith(f)), None)
        if ending:
            clause = clause.removesuffix(ending)
        elif start:
            clause = clause.removeprefix(start)
        else:
            break
    return clause


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？；])|\n+|\s+[-–—]+\s+")
_LONG_GAP = re.compile(r"\s{9,}")  # of which the pattern above would try every part


@lru_cache(maxsize=8192)
def sentences(text: str) -> tuple[str, ...]:
    """Divide a message into its sentences, in order; empty ones left out."""
    plain = _LONG_GAP.sub(lambda gap: "\n " if "\n" in gap[0] else " ", text)
    return tuple(part for part in (piece.strip() for piece in _SENTENCE.split(plain)) if part)


@lru_cache(maxsize=16_384)
def is_chatter(sentence: str) -> bool:
    """Say whether a sentence is small talk: nothing in it that an answer could turn on."""
    plain = normalise(sentence)
    if any(char.isdigit() for char in plain):
        return False
    if language_of(plain) == "zh":
        return _is_chatter_zh(plain)
    analysis = analyse(plain)
    if is_of_named(plain):
        return False
    content = [token for token in analysis.content if not token.weak]
    if not content:
        return not analysis.num_negations
    names = [{token.surface.casefold(), token.norm} for token in content]
    weighed = [name for name in names if name.isdisjoint(words_of("neutral"))]
    chatty = sum(not name.isdisjoint(words_of("chatter")) for name in weighed)
    return chatty > 0 and 2 * chatty >= len(weighed)


@lru_cache(maxsize=16_384)
def is_of_named(sentence: str) -> bool:
    """Say whether a sentence speaks of something by its name, and does not merely greet."""
    if _GREETS.match(sentence):
        return False
    names = (token.surface for token in analyse(sentence).tokens if token.name)
    return any(WORD.search(name) and name.casefold() not in words_of("deictic") for name in names)


def _is_chatter_zh(plain: str) -> bool:
    left = plain
    for word in sorted(words_of("chatter", "zh") | words_of("filler", "zh"), key=len, reverse=True):
        left = left.replace(word, "")
    letters = sum(char.isalpha() for char in left)
    return 2 * letters <= sum(char.isalpha() for char in plain)


@lru_cache(maxsize=16_384)
def is_empty(sentence: str) -> bool:
    """Say whether nothing of a sentence can matter: small talk, or a mere offer to help."""
    if is_chatter(sentence):
        return True
    if any(char.isdigit() for char in sentence) or language_of(sentence) == "zh":
        return False
    content = [token for token in analyse(normalise(sentence)).content if not token.weak]
    generic = words_of("generic") | words_of("chatter")
    return all(t.norm in generic or t.surface.casefold() in generic for t in content)


@lru_cache(maxsize=4096)
def core_of(text: str) -> str:
    """Return a message without its small talk."""
    return " ".join(part for part in sentences(text) if not is_empty(part))
