"""Take a Chinese text apart: by characters, after words with one meaning are made one."""

import re
from functools import cache

from semantic_layer.text.analysis import Analysis, Role, Token
from semantic_layer.text.lexicon import Lexicon, chinese
from semantic_layer.text.numerals import digits_for_chinese
from semantic_layer.text.script import Payloads, simplified

_A_NOT_A = re.compile(r"([\u4e00-\u9fff])[不没]\1")
_ENDS_ASKING = re.compile(r"[不没][?？!！。 ]*$")
_FRAMES = (
    ("whose", re.compile(r"什么的")),
    ("outcome", re.compile(r"怎么样|会怎么")),
    ("why", re.compile(r"为什么|原因")),
    ("when", re.compile(r"什么时候|几点|几号|哪天|哪年|多久")),
    ("where", re.compile(r"哪里|哪个(?:城市|国家|省|市)|在哪")),
    ("who", re.compile(r"谁(?!都)")),
    ("howmuch", re.compile(r"多少钱")),
    ("howmany", re.compile(r"多少")),
    ("how", re.compile(r"怎么")),
    ("which", re.compile(r"哪个|哪些|哪")),
    ("what", re.compile(r"什么")),
    ("yesno", re.compile(r"吗|能不能|是不是|有没有|会不会|要不要|好不好|么$")),
)
_FRAME_WORDS = re.compile(
    r"为什么|什么时候|几月几[号日]|几号|哪一?天|哪里|多少钱|多少|怎么办|怎么|哪个|哪些|什么|能不能|是不是|有没有|会不会|要不要|好不好"
)
_LINKS = frozenset("的从到把被给对向比跟让将使于")
_ASPECTS = "会有被要想过"
_DONE = re.compile(r"了(?:吗|么|没有?)?[?？!！。 ]*$")
_COPULA = re.compile(r"(?:什么|谁)是|是(?:什么|谁)")
_OPENS_ASKING = re.compile(r"\s*(?:什么|谁)")
_FROM = re.compile(r"从(?=.{1,12}到)")
_SAY = re.compile(r"用([\u4e00-\u9fff]{1,4}[语文])怎么[说讲]")
_WITHIN = re.compile(r"在\s*([a-z][a-z0-9+#. ]*?)\s*(?:中|里面|里)")
_HOW_MANY = re.compile(
    r"(?<![有哪这那前每隔第好过])(?:几|多少)个?(?:分钟|小时|天|周|星期|(?<=个)月|年)"
    r"(?=(?:才|就|可以|内|之内)?[能会可到熟完好])"
)
_TOKEN = re.compile(
    r"\d+(?:[.:/-]\d+)*|[A-Za-z]+(?:\+\+|#)?|[\u3400-\u9fff\uf900-\ufaff]|[+*/^=<>%]"
)
_PERSONS = {"first": "我咱俺", "second": "你您", "third_m": "他", "third_f": "她"}


def unified(text: str) -> str:
    """Return a text in simplified signs, asking particles left out, words of one meaning alike."""
    return _unify(_any_of("asking").sub("", simplified(text.casefold())))


def analyse_chinese(text: str, payloads: Payloads) -> Analysis:
    """Take a text apart by Chinese rules."""
    lexicon = chinese()
    plain = _any_of("asking").sub(" ", simplified(payloads.rest.casefold()))
    plain = _HOW_MANY.sub("多久", plain)
    plain = _unify(digits_for_chinese(_FROM.sub("", _WITHIN.sub(r"\1", plain))))
    plain = _SAY.sub(r"翻译成\1", plain)
    frame = next((name for name, pattern in _FRAMES if pattern.search(plain)), "")
    rest = _any_of("stop").sub(_kept_all if frame == "yesno" else " ", _FRAME_WORDS.sub(" ", plain))
    return Analysis(
        text=text,
        language="zh",
        tokens=tuple(_tokens(rest, lexicon)),
        frame=frame,
        modal=_modal(plain, frame),
        role_asked=_role_asked(plain, frame),
        num_negations=_negations(plain, lexicon),
        owners=frozenset(),
        persons=frozenset(
            name for name, signs in _PERSONS.items() if any(sign in rest for sign in signs)
        ),
        codes=payloads.codes,
        quotes=payloads.quotes,
        marks=frozenset(_marks().findall(plain)),
    )


def _modal(plain: str, frame: str) -> str:
    signs = "".join(sign for sign in _ASPECTS if sign in _A_NOT_A.sub("", plain))
    return f"{signs}了" if frame == "yesno" and _DONE.search(plain) else signs


def _role_asked(plain: str, frame: str) -> Role:
    """Tell "what causes it" (what comes first) from "what does it cause"."""
    if frame not in {"what", "who"} or _COPULA.search(plain):
        return ""
    return "subject" if _OPENS_ASKING.match(plain) else "object"


def _kept_all(stop: re.Match[str]) -> str:
    """Keep "all", "still" and "only then" where yes or no is asked; elsewhere they add little."""
    return stop[0] if stop[0] in chinese().classes["kept"] else " "


def _negations(plain: str, lexicon: Lexicon) -> int:
    bare = _ENDS_ASKING.sub("", _A_NOT_A.sub(r"\1", plain))
    bare = _any_of("not_negative").sub("", bare)
    return sum(bare.count(sign) for sign in lexicon.classes["negation"])


def _tokens(rest: str, lexicon: Lexicon) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(rest):
        sign = match[0]
        if sign[0].isdigit():
            tokens.append(Token(sign, "number", sign))
        elif sign in _LINKS or sign in lexicon.classes["negation"]:
            tokens.append(Token(sign, "link", sign))
        else:
            tokens.append(Token(sign, surface=sign))  # Latin ones too: HTTPS is no plural
    return tokens


def _unify(text: str) -> str:
    """Write every group of interchangeable words as its first member."""
    pattern, names = _synonyms()
    return pattern.sub(lambda match: names[match[0]], text)


@cache
def _synonyms() -> tuple[re.Pattern[str], dict[str, str]]:
    names: dict[str, str] = {}
    first: dict[int, str] = {}
    for word, groups in chinese().groups.items():
        group = min(groups)
        names[word] = first.setdefault(group, word)
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))), names


@cache
def _any_of(name: str) -> re.Pattern[str]:
    words = sorted(chinese().classes[name], key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)))


@cache
def _marks() -> re.Pattern[str]:
    lexicon = chinese()
    words = sorted(lexicon.sets.keys() | lexicon.opposites.keys(), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)))
