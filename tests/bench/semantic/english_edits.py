"""English pairs that natural sets lack: one change that matters, or several that do not."""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from semantic_layer.resources import load_lines
from semantic_layer.text.stemming import stem
from tests.bench import minimal_edits
from tests.bench.pair_sets import LabelledPair

Similar = Callable[[str], Sequence[str]]
Edit = Callable[[str, random.Random], str | None]

_QUESTION_WORDS = (
    ("how do i", "when should i", "where do i", "why should i", "do i have to"),
    ("how much does", "how long does", "how often does"),
    ("how much is", "where is", "when is", "what is"),
    ("how long", "how much", "how often", "how far", "how many"),
    ("where can i", "when can i", "how can i", "why can't i"),
    ("what is the best", "what is the worst", "what is the cheapest", "what is the fastest"),
    ("who is", "what is", "where is", "when was"),
    ("why do", "how do", "when do", "where do"),
    ("can i", "can't i", "should i", "must i"),
    ("is it safe to", "is it legal to", "is it cheaper to", "is it possible to"),
    ("i", "my friend", "my employee", "my child"),
    ("my", "my friend's", "my landlord's", "my son's", "your"),
    ("do you", "don't you", "did you", "do they"),
)
_NEGATED = (
    ("can", "can't"), ("can", "cannot"), ("do", "don't"), ("does", "doesn't"), ("is", "isn't"),
    ("are", "aren't"), ("should", "shouldn't"), ("will", "won't"), ("did", "didn't"),
    ("to", "not to"), ("with", "without"), ("use", "avoid using"), ("have", "not have"),
    ("always", "never"), ("must", "must not"), ("include", "leave out"),
)  # fmt: skip
_PREPOSITIONS = (
    ("before", "after", "during"), ("over", "under"), ("above", "below"), ("from", "to"),
    ("inside", "outside"), ("in", "outside"), ("first", "last", "second"), ("all", "one", "none"),
    ("more", "less"), ("at least", "at most"), ("minimum", "maximum"), ("until", "since"),
    ("for", "without", "against"), ("by", "after"), ("old", "new"), ("and", "or"),
)  # fmt: skip
_TAILS = (
    "on weekends", "for students", "for pensioners", "for children", "without a receipt",
    "if I'm under 18", "in winter", "for my business", "on Android", "online", "over the phone",
    "in another country", "for the second time", "with a dog", "at night", "for free",
    "in Python", "in French", "in one sentence", "for a beginner", "without a passport",
)  # fmt: skip
_UNIT_WORDS = (
    "seconds minutes hours days weeks months years", "km miles metres", "kg pounds grams",
    "dollars euros pounds yen", "am pm", "gb mb tb", "celsius fahrenheit",
)  # fmt: skip
_FRAMES = (
    ("how do i", "how can i", "what's the best way to", "how to", "how would i", "steps to",
     "what do i need to do to", "tell me how to", "can you explain how to", "how does one",
     "show me how to", "is there a way to", "what is the procedure to", "i want to know how to"),
    ("what is", "what's", "tell me what is", "whats", "could you tell me what is"),
    ("can i", "am i able to", "is it possible to", "may i", "could i", "am i allowed to"),
    ("why is", "what's the reason", "how come"),
    ("why do", "what makes", "how come"),
    ("what are", "tell me", "list", "give me", "which are"),
    ("where can i", "where do i", "which place can i"),
    ("do you", "will you", "does your company"),
)  # fmt: skip
_OPENINGS = (
    "please tell me: ", "hi, ", "um ", "so ",
    "quick question, ", "hello, ", "hey ", "ok ", "just wondering, ",
    "sorry, ", "good morning, ", "hi there! ",
    "a question: ", "i was wondering, ", "please, ", "uh, ",
    "i'd like to know: ", "can you help? ",
)  # fmt: skip
_ENDINGS = (
    " thanks!", " thank you!", " please", " pls", " many thanks",
    " thx", " cheers", "??", " ?", ".", "!",
    " thanks in advance", " please help", " need to know", " anyone know?",
)  # fmt: skip
_SPELLINGS = (
    "colour color", "organise organize",
    "favourite favorite", "cancelled canceled", "licence license",
    "centre center", "travelling traveling", "grey gray", "cheque check", "apartment flat",
    "mobile cell", "holiday vacation", "you u", "are r", "because cuz", "tomorrow tmrw", "your ur",
    "information info", "application app", "address addr", "account acct", "with w/", "about abt",
    "number no.", "minutes mins", "hours hrs", "percent %", "and &", "want wanna", "going gonna",
    "password pwd", "message msg", "do not don't", "is not isn't", "cannot can't", "what is what's",
    "i am i'm", "i have i've", "it is it's", "that is that's",
)  # fmt: skip
_DIGITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def changed(text: str, similar: Similar, rng: random.Random) -> str | None:
    """Return the text with one change after which another answer is right."""
    edits: list[Edit] = [
        _numbers, _numbers, _opposite, _opposite, _opposite, _member, _member, _question_word,
        _negated, _preposition, _tail, _reversed_way, _swapped, _unit,
        lambda t, r: _pair_text(minimal_edits.changed(t, similar, r)),
        lambda t, r: _pair_text(minimal_edits.changed(t, similar, r)),
        lambda t, r: _pair_text(minimal_edits.changed(t, similar, r)),
    ]  # fmt: skip
    rng.shuffle(edits)
    for edit in edits:
        result = edit(text, rng)
        if result is not None and result.casefold() != text.casefold():
            return result
    return None


def retyped(text: str, rng: random.Random) -> str:
    """Return the text typed differently, to the same effect."""
    result = text
    for _ in range(rng.choice((1, 1, 2, 3))):
        result = rng.choice(_RETYPINGS)(result, rng) or result
    return result


def swapped_words(text: str, rng: random.Random) -> str | None:
    """Return the text with two of its content words or phrases exchanged, as PAWS does."""
    return _swapped(text, rng)


def _pair_text(pair: LabelledPair | None) -> str | None:
    return None if pair is None else pair.other


def _replace(text: str, one: str, other: str) -> str | None:
    pattern = re.compile(r"(?<![\w'])" + re.escape(one) + r"(?![\w'])", re.IGNORECASE)
    match = pattern.search(text)
    return None if match is None else text[: match.start()] + other + text[match.end() :]


def _from_groups(text: str, groups: Sequence[Sequence[str]], rng: random.Random) -> str | None:
    fitting = [
        (member, other)
        for group in groups
        for member in group
        if re.search(r"(?<![\w'])" + re.escape(member) + r"(?![\w'])", text, re.IGNORECASE)
        for other in group
        if other != member
    ]
    if not fitting:
        return None
    return _replace(text, *rng.choice(fitting))


def _numbers(text: str, rng: random.Random) -> str | None:
    matches = list(re.finditer(r"\d+", text))
    if not matches:
        return None
    match = rng.choice(matches)
    value, width = int(match[0][:9]), len(match[0])
    others = [value + d for d in (-1, 1, 2, 5, 10)] + [value * 10, value * 2, value // 2]
    if width > 1:
        others.append(int(match[0][:9][::-1]))
    other = rng.choice([o for o in others if o > 0 and o != value] or [value + 1])
    return text[: match.start()] + str(other) + text[match.end() :]


@cache
def _opposites() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    lines = [line.split("|") for line in load_lines("antonyms.en.txt") if line.count("|") == 1]
    return tuple(
        (tuple(w.strip() for w in a.split(",")), tuple(w.strip() for w in b.split(",")))
        for a, b in lines
    )


def _opposite(text: str, rng: random.Random) -> str | None:
    fitting = []
    for sides in _opposites():
        for here, there in (sides, sides[::-1]):
            for word in here:
                for ending, other in (("", ""), ("ing", "ing"), ("ed", "ed"), ("s", "s")):
                    if _has(text, word + ending):
                        fitting.append((word + ending, rng.choice(there) + other))
    return _replace(text, *rng.choice(fitting)) if fitting else None


def _has(text: str, word: str) -> bool:
    return (
        word in text.casefold()
        and re.search(rf"(?<![\w']){re.escape(word)}(?![\w'])", text, re.IGNORECASE) is not None
    )


@cache
def _sets() -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(line.split(":")[1].split()) for line in load_lines("sets.en.txt"))


def _member(text: str, rng: random.Random) -> str | None:
    words = set(re.findall(r"[\w-]+", text.casefold()))
    fitting = [(w, o) for s in _sets() for w in s if w in words for o in rng.sample(s, 1) if o != w]
    if not fitting:
        return None
    one, other = rng.choice(fitting)
    return _replace(text, one, other.capitalize() if rng.random() < 0.5 else other)


def _question_word(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, _QUESTION_WORDS, rng)


def _negated(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, _NEGATED, rng)


def _preposition(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, _PREPOSITIONS, rng)


def _unit(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, [line.split() for line in _UNIT_WORDS], rng)


def _tail(text: str, rng: random.Random) -> str | None:
    body = text.rstrip("?!. ")
    return f"{body} {rng.choice(_TAILS)}{text[len(body) :]}"


def _reversed_way(text: str, rng: random.Random) -> str | None:
    match = re.search(
        r"(.*?)\b([\w' ]{2,20}) (to|into|than|from|vs|versus|over|before|after) "
        r"([\w' ]{2,20})([?.,].*|$)",
        text,
    )
    if match is None or rng.random() < 0.3:
        return None
    one, other = match[2].split(" ")[-1], match[4].split(" ")[-1]
    head = match[2][: len(match[2]) - len(one)]
    tail = match[4][: len(match[4]) - len(other)]
    if one.casefold() == other.casefold():
        return None
    return f"{match[1]}{head}{other} {match[3]} {tail}{one}{match[5]}"


def _swapped(text: str, rng: random.Random) -> str | None:
    words = text.split(" ")
    content = [
        i
        for i, word in enumerate(words)
        if len(word.strip("?,.!")) > 3 or (i and word[:1].isupper())
    ]
    if len(content) < 2:
        return None
    i, j = sorted(rng.sample(content, 2))
    one, other = words[i].strip("?,.!"), words[j].strip("?,.!")
    if stem(one.casefold()) == stem(other.casefold()):
        return None
    words[i], words[j] = words[i].replace(one, other), words[j].replace(other, one)
    return " ".join(words)


def _slip(text: str, rng: random.Random) -> str | None:
    places = list(re.finditer(r"[A-Za-z]{5,}", text))
    if not places:
        return None
    word = rng.choice(places)
    at = rng.randrange(word.start() + 1, word.end() - 1)
    kind = rng.random()
    if kind < 0.35:
        return text[:at] + text[at + 1 :]
    if kind < 0.65:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    if kind < 0.85:
        return text[:at] + text[at] + text[at:]
    return text[:at] + rng.choice("aeioustnrl") + text[at + 1 :]


def _reframed(text: str, rng: random.Random) -> str | None:
    low = text.casefold()
    for group in rng.sample(_FRAMES, len(_FRAMES)):
        for one in group:
            if low.startswith(one + " "):
                return rng.choice(group) + text[len(one) :]
    return None


def _respelt(text: str, rng: random.Random) -> str | None:
    pairs = [line.rsplit(" ", 1) for line in _SPELLINGS]
    pairs = pairs + [pair[::-1] for pair in pairs if pair[1] not in {"r", "u", "%", "&", "no."}]
    fitting = [(a, b) for a, b in pairs if _has(text, a)]
    return _replace(text, *rng.choice(fitting)) if fitting else None


def _spelled_digit(text: str, rng: random.Random) -> str | None:
    for number in rng.sample(range(2, 13), 11):
        if _has(text, str(number)):
            return _replace(text, str(number), _DIGITS[number])
        if _has(text, _DIGITS[number]):
            return _replace(text, _DIGITS[number], str(number))
    return None


def _synonym(text: str, rng: random.Random) -> str | None:
    groups = [[m.strip() for m in line.split("|")] for line in load_lines("synonyms.en.txt")]
    return _from_groups(text, groups, rng)


def _dropped_word(text: str, rng: random.Random) -> str | None:
    words = text.split(" ")
    places = [
        i for i, w in enumerate(words) if w.casefold() in {"the", "a", "an", "of", "do", "is", "i"}
    ]
    if not places or len(words) < 5:
        return None
    del words[rng.choice(places)]
    return " ".join(words)


def _fronted(text: str, rng: random.Random) -> str | None:
    match = re.fullmatch(
        r"(\w+.*) ((?:in|at|on|for|near|when|if|after|before|with|without) (?:[\w']+ ?){1,5})\?",
        text,
    )
    return None if match is None else f"{match[2].strip()}, {match[1][0].lower()}{match[1][1:]}?"


_RETYPINGS: tuple[Edit, ...] = (
    lambda text, rng: text.lower(),
    lambda text, rng: text.upper() if rng.random() < 0.2 else text.lower(),
    lambda text, rng: text.rstrip("?.!"),
    lambda text, rng: re.sub(r"[',]", "", text),
    lambda text, rng: rng.choice(_OPENINGS) + text[0].lower() + text[1:],
    lambda text, rng: text.rstrip("?.!") + rng.choice(_ENDINGS),
    _slip, _slip, _reframed, _reframed, _respelt, _spelled_digit, _synonym, _synonym, _synonym,
    _dropped_word, _fronted, _fronted,
)  # fmt: skip
