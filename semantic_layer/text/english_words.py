"""Read an English text as words: contractions written out, politeness and hesitation dropped.

Knows no grammar beyond a word's neighbours. Pure.
"""

import re
from dataclasses import dataclass, replace

from semantic_layer.text.lexicon import Lexicon

_EXTENSIONS = (
    "txt|md|csv|tsv|json|xml|html?|css|ya?ml|toml|ini|cfg|conf|log|sql|py|js|ts|jsx|tsx|sh|c|h|cpp|rs"
    "|go|java|rb|php|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|svg|mp[34]|wav|zip|tar|gz|exe"
)
_CHUNK = re.compile(
    r"(?P<file>(?<![\w.])(?!(?:node|vue|next|react|express|d3|three)\.)[\w-]{1,128}\.(?:"
    + _EXTENSIONS
    + r")\b)"
    r"|(?P<mixed>(?<![^\W_])(?=[^\W_]*\d)(?=[^\W_]*[^\W\d_])[^\W_]+(?![^\W_]))"
    r"|(?P<acronym>(?<![^\W_])(?:[^\W\d_]\.){2,})"
    r"|(?P<number>[$£€¥]?\d+(?:[.,:/-]\d+)*)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*(?:\+\+|\#(?!\w))?)"
    r"|(?P<operator>[+*/^=<>×÷%°]|(?<=\s)-(?=\s|\d)|(?<!\S)[!&~](?=\w))"
    r"|(?P<break>(?<!\b[MmSsDd][trs](?=\.))[,;:.!?()](?=\s|$))"
    r"|(?P<symbol>[\u2190-\u2bff\u3200-\u33ff\U0001f000-\U0001faff])"
)
_ENDINGS = ("n't", "'m", "'re", "'ve", "'ll", "'d", "'s", "'")
_PART = re.compile(r"\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word as read: ``lower`` is compared, ``surface`` keeps the case."""

    lower: str
    surface: str
    starts: bool = False  # begins a sentence, so a capital says nothing
    after_break: bool = False
    shouts: bool = False  # in capitals within a text that is not ("IT", "US"), so never a stop word


def read_words(text: str, lexicon: Lexicon) -> list[Word]:
    """Return the words that say something, in order."""
    return _without_fillers(_read(text, lexicon), lexicon)


def _read(text: str, lexicon: Lexicon) -> list[Word]:
    """Split into words with contractions written out; hyphens are spaces."""
    words: list[Word] = []
    mixed_case = any(sign.islower() for sign in text)
    starts, after_break = True, False
    for match in _CHUNK.finditer(text):
        chunk = match[0]
        if match["break"]:
            starts = starts or chunk in ".!?:"
            after_break = True
            continue
        for part in _parts(chunk, lexicon) if match["mixed"] else _expand(chunk, lexicon):
            is_small = _is_article(part, starts)
            if is_small and words and not (starts or after_break):
                is_small = not _is_first(part, words[-1], lexicon)
            shouts = mixed_case and part.surface.isupper() and not is_small
            words.append(Word(part.lower, part.surface, starts, after_break, shouts))
            starts = after_break = False
    return words


def _is_article(word: Word, starts: bool) -> bool:
    return word.lower == "i" or (word.lower == "a" and starts)


def _is_first(word: Word, before: Word, lexicon: Lexicon) -> bool:
    """Say whether "I" is the number of what is named before it ("Elizabeth I")."""
    is_numbered = before.lower in lexicon.classes["numbered"] and before.surface[0].isupper()
    return is_numbered and word.surface == "I"


def _parts(chunk: str, lexicon: Lexicon) -> list[Word]:
    """Divide letters from digits ("100ml"), unless together they are a word we know ("2FA")."""
    if lexicon.knows(chunk.casefold()):
        return [Word(chunk.casefold(), chunk)]
    return [Word(part.casefold(), part) for part in _PART.findall(chunk)]


def _expand(chunk: str, lexicon: Lexicon) -> list[Word]:
    if chunk.endswith("."):
        chunk = chunk.replace(".", "").upper()
    lower = chunk.casefold()
    if lower in lexicon.contractions and not (chunk.isupper() and len(chunk) < len("can")):
        return [Word(word, word) for word in lexicon.contractions[lower]]
    for ending in _ENDINGS if "'" in lower else ():
        if lower.endswith(ending) and len(lower) > len(ending):
            rest = chunk[: -len(ending)]
            return [Word(rest.casefold(), rest), *_ending(rest.casefold(), ending, lexicon)]
    return [Word(lower, chunk)]


def _ending(stem: str, ending: str, lexicon: Lexicon) -> list[Word]:
    """Read what clings to a word: "'s" is a verb after "what" and its like, else possessive."""
    if ending == "'":
        return []
    if ending == "'s":
        return [Word("is", "is")] if stem in lexicon.classes["before_is"] else []
    expanded = lexicon.contractions[ending][0]
    return [Word(expanded, expanded)]


def _without_fillers(words: list[Word], lexicon: Lexicon) -> list[Word]:
    """Drop politeness and hesitation; a capital after it still says nothing."""
    fillers = lexicon.classes["filler"]
    kept: list[Word] = []
    starts = False
    for i, word in enumerate(words):
        starts = starts or word.starts
        if word.lower in fillers and not word.shouts and not _means_something(words, i):
            continue
        kept.append(replace(word, starts=True) if starts and not word.starts else word)
        starts = False
    return kept


def _means_something(words: list[Word], i: int) -> bool:
    """Say whether a word that is a filler elsewhere carries meaning here."""
    word = words[i].lower
    before = words[i - 1].lower if i else ""
    after = words[i + 1].lower if i + 1 < len(words) else ""
    opens = i == 0 or words[i].starts
    rules = {
        "like": before not in {"i", "do", "so", "is", "um", "uh"},
        "well": not opens,
        "so": not opens,
        "one": before != "quick",
        "quick": i >= _OPENING_WORDS,
        "question": i >= _OPENING_WORDS,
        "many": after != "thanks",
        "excuse": after != "me",
    }
    in_sentence = not opens and not words[i].after_break and i < len(words) - 2
    return rules.get(word, word in _GREETINGS and in_sentence)


_GREETINGS = frozenset({"hey", "hi", "hello", "yes", "no", "thanks", "thank", "sorry", "dear"})
_OPENING_WORDS = 3  # "hi, quick question": further in, the words mean what they say
