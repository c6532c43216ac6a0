"""Chinese pairs that natural sets lack: one change that matters, or several that do not."""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache

from opencc import OpenCC

from semantic_layer.resources import load_lines

Similar = Callable[[str], Sequence[str]]
Split = Callable[[str], list[str]]
Edit = Callable[[str, random.Random], str | None]

_NEGATED = (
    ("能", "不能"), ("会", "不会"), ("可以", "不可以"), ("应该", "不应该"), ("有", "没有"),
    ("是", "不是"),
    ("要", "不要"), ("需要", "不需要"), ("用", "不用"), ("包括", "不包括"), ("允许", "禁止"),
    ("适合", "不适合"),
    ("必须", "不必"), ("已经", "还没"), ("喜欢", "不喜欢"), ("支持", "不支持"), ("吃", "不吃"),
    ("含", "不含"),
)  # fmt: skip
_QUESTION_WORDS = (
    ("怎么", "为什么", "什么时候", "在哪里", "要不要"), ("如何", "为何", "何时", "何处"),
    ("多少钱", "多久", "多远", "多大", "在哪"), ("哪里", "什么时候", "多少钱"),
    ("谁", "什么", "哪里"),
    ("多长时间", "多少钱", "多长"), ("几点", "几号", "几天"), ("我", "我朋友", "我孩子", "我爸妈"),
    ("我的", "你们的", "我朋友的", "孩子的"), ("最好的", "最差的", "最便宜的", "最贵的"),
    ("可以", "必须", "为什么可以"), ("能不能", "为什么不能", "什么时候能"),
)  # fmt: skip
_SCOPES = (
    ("之前", "之后"), ("以前", "以后"), ("以上", "以下"), ("第一", "最后", "第二"),
    ("所有", "某个"),
    ("线上", "线下"), ("网上", "门店"), ("国内", "国外"), ("最多", "最少"), ("最大", "最小"),
    ("上午", "下午"),
    ("个人", "企业"), ("成人", "儿童"), ("学生", "老人"), ("男", "女"), ("周末", "工作日"),
    ("单程", "往返"),
    ("早上", "晚上"), ("免费", "付费"), ("新", "旧"), ("买家", "卖家"), ("房东", "租客"),
    ("比", "不如"),
    ("和", "或"), ("前", "后"), ("里", "外"), ("上", "下"), ("左", "右"), ("借", "还"),
    ("进", "出"),
)  # fmt: skip
_HEADS = (
    "周末",
    "没有发票",
    "学生",
    "孩子",
    "未满18岁",
    "在国外",
    "第二次",
    "公司",
    "在手机上",
    "晚上",
    "老人",
    "用英文",
    "不花钱",
)
_OPENINGS = (
    "请问",
    "你好，",
    "想问一下，",
    "您好，请问",
    "麻烦问下",
    "那个，",
    "我想知道",
    "问一下",
    "求助：",
    "嗯，",
    "帮我看看，",
    "请教一下，",
)
_ENDINGS = (
    "？谢谢",
    "啊？",
    "呢？",
    "呀",
    "？",
    "。",
    "",
    "，谢谢！",
    "，急",
    "？多谢",
    "吗谢谢",
    "，在线等",
)
_FRAMES = (
    ("怎么", "如何", "怎样", "咋", "要怎么", "该怎么", "应该怎么"),
    ("为什么", "为何", "为啥", "怎么会"),
    ("什么时候", "何时", "啥时候"), ("哪里", "哪儿", "什么地方"),
    ("多少钱", "什么价格", "价格是多少"),
    ("能不能", "可以", "能", "是否可以"), ("可不可以", "能不能", "可以"), ("是不是", "是否"),
    ("什么", "啥"),
    ("没有", "没"), ("多久", "多长时间"), ("需要", "要"), ("的时候", "时"), ("一下", ""),
    ("吗", "么"),
    ("怎么办", "该怎么处理", "怎么处理", "如何是好"), ("哪些", "什么", "哪几种"),
    ("我想", "我要", "想"),
    ("你们", "贵公司"), ("孩子", "小孩"), ("好吗", "行吗", "可以吗"),
)  # fmt: skip
_DIGITS = "零一二三四五六七八九十"


def changed(text: str, similar: Similar, split: Split, rng: random.Random) -> str | None:
    """Return the text with one change after which another answer is right."""
    edits: list[Edit] = [
        _numbers, _numbers, _opposite, _opposite, _member, _member, _question_word, _question_word,
        _negated, _negated, _scope, _scope, _head, _reversed_way,
        lambda t, r: swapped_words(t, split, r),
        lambda t, r: swapped_words(t, split, r),
        lambda t, r: _neighbour(t, similar, split, r),
        lambda t, r: _neighbour(t, similar, split, r),
        lambda t, r: _neighbour(t, similar, split, r),
    ]  # fmt: skip
    rng.shuffle(edits)
    for edit in edits:
        result = edit(text, rng)
        if result is not None and result != text:
            return result
    return None


def retyped(text: str, rng: random.Random) -> str:
    """Return the text typed differently, to the same effect."""
    result = text
    for _ in range(rng.choice((1, 1, 2, 3))):
        result = rng.choice(_RETYPINGS)(result, rng) or result
    return result


def swapped_words(text: str, split: Split, rng: random.Random) -> str | None:
    """Return the text with two of its words exchanged, as PAWS does."""
    words = split(text)
    places = [i for i, word in enumerate(words) if len(word) > 1]
    if len(places) < 2:
        return None
    i, j = rng.sample(places, 2)
    if words[i] == words[j]:
        return None
    words[i], words[j] = words[j], words[i]
    return "".join(words)


def _from_groups(text: str, groups: Sequence[Sequence[str]], rng: random.Random) -> str | None:
    fitting = [
        (w, o) for group in groups for w in group if w and w in text for o in group if o != w
    ]
    if not fitting:
        return None
    one, other = rng.choice(fitting)
    return text.replace(one, other, 1)


def _numbers(text: str, rng: random.Random) -> str | None:
    matches = list(re.finditer(r"\d+|[一二三四五六七八九十](?=[个年月天岁点号元块次岁周小])", text))
    if not matches:
        return None
    match = rng.choice(matches)
    if match[0] in _DIGITS:
        other = rng.choice([d for d in _DIGITS[1:] if d != match[0]])
    else:
        value = int(match[0][:9])
        choices = [value + d for d in (-1, 1, 2, 5, 10)] + [value * 10, value * 2, value // 2]
        other = str(rng.choice([c for c in choices if c > 0 and c != value] or [value + 1]))
    return text[: match.start()] + other + text[match.end() :]


@cache
def _opposites() -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    lines = [line.split("|") for line in load_lines("antonyms.zh.txt") if line.count("|") == 1]
    return tuple(
        (tuple(w.strip() for w in a.split(",")), tuple(w.strip() for w in b.split(",")))
        for a, b in lines
    )


def _opposite(text: str, rng: random.Random) -> str | None:
    fitting = [
        (word, other)
        for sides in _opposites()
        for here, there in (sides, sides[::-1])
        for word in here
        if word in text
        for other in there
    ]
    return text.replace(*rng.choice(fitting), 1) if fitting else None


@cache
def _sets() -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(re.split(r"[:：]", line, maxsplit=1)[1].split()) for line in load_lines("sets.zh.txt")
    )


def _member(text: str, rng: random.Random) -> str | None:
    fitting = [(w, o) for s in _sets() for w in s if w in text for o in rng.sample(s, 1) if o != w]
    return text.replace(*rng.choice(fitting), 1) if fitting else None


def _question_word(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, _QUESTION_WORDS, rng)


def _negated(text: str, rng: random.Random) -> str | None:
    for pair in rng.sample(_NEGATED, len(_NEGATED)):
        if pair[1] in text:
            return text.replace(pair[1], pair[0], 1)
        if pair[0] in text and f"{pair[0]}不{pair[0]}" not in text:
            return text.replace(pair[0], pair[1], 1)
    return None


def _scope(text: str, rng: random.Random) -> str | None:
    return _from_groups(text, _SCOPES, rng)


def _head(text: str, rng: random.Random) -> str | None:
    return rng.choice(_HEADS) + text


def _reversed_way(text: str, rng: random.Random) -> str | None:
    match = re.search(
        r"从(.{1,6}?)(到|去|转到|换成|换到|改成)(.{1,6}?)(?=[要坐怎多的有需？?，]|$)", text
    )
    if match is None:
        match = re.search(r"(\w{2,4})(比|和|给|借给|转给)(\w{2,4})", text)
        if match is None:
            return None
        return text[: match.start()] + match[3] + match[2] + match[1] + text[match.end() :]
    return text[: match.start()] + "从" + match[3] + match[2] + match[1] + text[match.end() :]


def _neighbour(text: str, similar: Similar, split: Split, rng: random.Random) -> str | None:
    words = split(text)
    places = [i for i, word in enumerate(words) if len(word) > 1 and similar(word)]
    if not places:
        return None
    at = rng.choice(places)
    words[at] = rng.choice(similar(words[at]))
    return "".join(words)


def _synonym(text: str, rng: random.Random) -> str | None:
    groups = [[m.strip() for m in line.split("|")] for line in load_lines("synonyms.zh.txt")]
    return _from_groups(text, groups, rng)


@cache
def _to_traditional() -> OpenCC:
    return OpenCC("s2t")


def _written_traditional(text: str, rng: random.Random) -> str | None:
    return str(_to_traditional().convert(text)) if rng.random() < 0.5 else None


def _slip(text: str, rng: random.Random) -> str | None:
    if len(text) < 8:
        return None
    at = rng.randrange(1, len(text) - 2)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _digit_form(text: str, rng: random.Random) -> str | None:
    match = re.search(
        r"(?<![\d.])(\d)(?![\d.])|([一二三四五六七八九])(?=[个年月天岁点号元块次])", text
    )
    if match is None:
        return None
    other = _DIGITS[int(match[1])] if match[1] else str(_DIGITS.index(match[2]))
    return text[: match.start()] + other + text[match.end() :]


def _moved(text: str, rng: random.Random) -> str | None:
    parts = [part for part in re.split(r"[，,]", text.rstrip("？?。")) if part]
    if len(parts) != 2:
        return None
    return f"{parts[1]}，{parts[0]}？"


_RETYPINGS: tuple[Edit, ...] = (
    lambda text, rng: text.rstrip("？?。！!"),
    lambda text, rng: rng.choice(_OPENINGS) + text,
    lambda text, rng: text.rstrip("？?。！!") + rng.choice(_ENDINGS),
    lambda text, rng: text.replace("，", rng.choice((" ", "", ","))).replace("？", "?"),
    lambda text, rng: re.sub(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])", " ", text),
    lambda text, rng: _from_groups(text, _FRAMES, rng),
    lambda text, rng: _from_groups(text, _FRAMES, rng),
    lambda text, rng: _from_groups(text, _FRAMES, rng),
    _synonym, _synonym, _synonym, _written_traditional, _slip, _digit_form, _moved,
)  # fmt: skip
