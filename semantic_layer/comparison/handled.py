"""What a text asks to be handled as a text: translated, spelled, corrected, reversed. Pure.

It stands in quotes, before or behind a colon, or bare between the words that ask for it. Knows the
words of English and Chinese that ask so.
"""

import re
from functools import cache, lru_cache

from semantic_layer.text.lexicon import set_members
from semantic_layer.text.script import fold, normalise, plain_of

_LONGEST = 200  # characters of a bare text; longer ones are quoted, or follow a colon
_VERBS = (
    r"translate|correct|proofread|fix|check|edit|punctuate|spell|upper ?case|lower ?case"
    r"|capitali[sz]e|reverse|repeat|echo|count|summari[sz]e|rewrite|rephrase|paraphrase|classify"
    r"|pronounce|encode|decode|hash|parse|simplify|shorten|say"
)
_ANYONE = "(?:do|would|can|could|should|to|does) ?(?:you|i|we|one|people)? ?"
_HEAD = (
    r"(?:(?:please|can you|could you|would you|help me|kindly|now|to) )*(?:{verbs})\b"
    r"|.*\b(?:this|following|these|next)\b.*\b(?:sentences?|phrases?|words?|texts?|paragraphs?"
    r"|quotes?|strings?|lines?|passages?|emails?|messages?|grammar|correct|right|wrong|grammatical)\b.*"
    r"|is (?:this|it|that) .*\b(?:correct|right|wrong|grammatical)\b.*"
    r"|.*\b(?:tense|sentiment|grammatical|translation|in (?:{languages})$)"
    r"|.*(?:翻译|译成|怎么说|对吗|正确吗|通顺吗|病句|语法|改写|润色|纠正|修改|改成|总结|概括|朗读"
    r"|拼写|时态|情感|缩写|扩写|大写|小写|倒过来|反过来|重复|跟我[念读说])"
)
_TAIL = (
    r"(?:is (?:this|that|it) )?(?:grammatically )?(?:correct|right|wrong|grammatical)(?: english)?"
    r"|(?:please )?(?:translate|translation|correct|proofread|spell|reverse)\b.*|in (?:{languages})"
    r"|(?:请|帮我)?(?:翻译|译成|这句话?(?:对|通顺|正确)吗|对吗|正确吗|用.{{1,4}}怎么说).*"
)
_EN_BARE = (
    r"\btranslate (.+?) (?:from \w+ )?(?:in)?to (?:{languages})\b",
    r"\bhow {anyone}say (.+?) in (?:{languages})\b",
    r"\bhow {anyone}(?:spell|pronounce) (.+?)$",
    r"\bhow (?:is|are) (.+?) (?:said|called|written|spel\w+|pronounced)(?: in (?:{languages}))?$",
    r"\b(?:{languages}) (?:word|words|term|translation|phrase|name) (?:for|of) (.+?)$",
    r"\b(?:word|term|translation|phrase) (?:for|of) (.+?) in (?:{languages})$",
    r"^what(?: is| are|'s) (?!the |a list|some |most )((?:\S+ ){{0,2}}\S+) in (?:{languages})$",
    r"\b(?:correct|right|grammatical|grammatically correct|proper) to (?:say|write) (.+?)$",
    r"^(?:please )?(?:spell|pronounce|conjugate|capitali[sz]e) (?:out )?(.+?)$",
    r"\b(?:tense|mood) (?:is|of) (.+?)(?: in)?$",
    r"\b(?:rhym\w+ with|(?:anagrams?|plural|past tense|\w+nyms?|scrabble \w+) (?:of|for)) (.+?)$",
)
_ZH_BARE = (
    r"[把将](.+?)(?:翻译|译)[成为到]",
    r"^(.+?)[,，]?(?:这句话|这句|请)?(?:翻译成|译成|译为)(?:{tongues})$",
    r"(?:翻译成|译成|译为)(?:{tongues})[,，。\s]*(.+)$",
    r"^(?:请|帮我)*翻译(?:一下)?(?!成|为|[^\s]{{0,4}}软件)(.+?)(?:[成为](?:{tongues}))?$",
    r"(?:用|拿)?(?:{tongues})(?:里|中)?怎么[说讲写读拼念]((?![呢啊呀吧的了]).+?)$",
    r"怎么用(?:{tongues})[说讲写]((?![呢啊呀吧的了]).+?)$",
    r"^(?:请问)?(.+?)(?:这(?:句话?|个词)|一词)?[,，]?[用的拿]?(?:{tongues})[里中该要]*怎么[说讲写读拼念译翻]",
    r"^(.+?)的(?:{tongues})(?:翻译|单词|名|名字)?(?:是什么|是啥|怎么说)?$",
    r"^(.+?)[,，]?(?:这句话?|这个句子)?(?:对不对|对吗|正确吗|通顺吗|有没有语病|是病句吗)$",
    r"^(.+?)(?:怎么|如何)(?:拼写|拼|造句|断句)$",
)
_NAMED = re.compile(
    r"^(?:the )?(?:english |following |given )*"
    r"(?:words?|phrases?|sentences?|expressions?|texts?|terms?|strings?)[ :]+"
    r"|^(?:词语|单词|句子|短语)"
)
_ASKS_SO = re.compile(
    r"translat|say|spell|pronounc|correct|word|term|write|written|called|tense|rhym|anagram"
    r"|plural|nym|scrabble|etymolog|conjugat|capitali|express| in |翻译|译|怎么|如何|的"
    r"|[对确顺]吗|对不对|病"
)


@lru_cache(maxsize=512)  # one look-up reads the same few texts
def handled(text: str) -> str | None:
    """Return what is to be handled, as it is written, None where nothing is."""
    found = _around_colon(text)
    return found if found is not None else _bare(text)


def as_words(text: str) -> str:
    """Return a text without what typing adds: case, width, quotes, marks around and between."""
    return fold(normalise(text).replace('"', " "))


def _around_colon(text: str) -> str | None:
    """Return what stands behind "correct this:", or before ": correct?"."""
    head_ends = _COLON.search(text)
    if head_ends is None:
        return None
    head, body = text[: head_ends.start()], text[head_ends.end() :]
    if body.strip() and len(head) <= _LONGEST and _patterns()[0].match(_plain(head)):
        return body.strip()
    *_, last = _COLON.finditer(text)
    tail = _plain(text[last.end() :])
    return text[: last.start()].strip() if tail and _patterns()[1].fullmatch(tail) else None


_COLON = re.compile(r"[:：](?!\d)|\n")


def _bare(text: str) -> str | None:
    plain = _plain(text)
    if len(plain) > _LONGEST or not _ASKS_SO.search(plain):
        return None
    found = next((m for pattern in _patterns()[2:] if (m := pattern.search(plain))), None)
    if found is None:
        return None
    quoted = _QUOTED.search(found[1])
    return quoted[1] if quoted else _NAMED.sub("", found[1].strip(_MARKS)).strip(_MARKS)


_MARKS = " \"',，。"
_QUOTED = re.compile(r"[\"'](?<![a-z]')(.+)[\"'](?![a-z])")


def _plain(text: str) -> str:
    return plain_of(text).strip(" ?.!。？！")


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of heads, of tails and of bare texts, with the names of languages."""
    names = {
        "verbs": _VERBS,
        "anyone": _ANYONE,
        "languages": "|".join(set_members("sets.en.txt", "language")),
        "tongues": "|".join(set_members("sets.zh.txt", "语言")) + "|英文|日文|法文|德文|韩文|俄文",
    }
    sources = (_HEAD, _TAIL, *_EN_BARE, *_ZH_BARE)
    return tuple(re.compile(source.format_map(names)) for source in sources)
