"""What Chinese questions of the same words do by their order. Pure.

"怎么煮鸡蛋" and "鸡蛋怎么煮" ask the same, what is done to something may come first; "轮廓" and
"轮廓的廓" do not, the second asks of one sign of the word, nor do "到期不取" and "没到期取了".
"""

import re

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.text.chinese import unified
from semantic_layer.text.lexicon import chinese
from semantic_layer.text.script import normalise, simplified

_HOW = "怎么"
_STATE = re.compile(r"怎么(?:样|办|了|回事)?$|怎么样")
_BREAKS = re.compile(r"[\s,，。、?？!！~的]")
A_NOT_A = re.compile(r"([\u4e00-\u9fff])[不没]\1")
_DENIAL = re.compile(r"(?:不|没有?)([\u4e00-\u9fff])")
_LEAST_THING = 2  # signs
_LONGEST = 60  # signs of a text in which a turned word is looked for
_SIGN = re.compile(
    r"(?:[中里]的?|的)[‘“'\"]?((?!是)[\u4e00-\u9fff])[’”'\"]?字?"
    r"(?=的(?:意思|含义|读音|拼音)|是?(?:什么|啥)|怎么读|[读念])"
)


def is_fronted(c: Comparison) -> bool:
    """Say whether both ask the same, and one names first what the other names behind.

    How a thing is done, who did it, or which of some is the most.
    """
    if c.one.language != "zh" or c.other.language != "zh":
        return False
    texts = [simplified(normalise(side.text)).strip("?？!！。 ") for side in (c.one, c.other)]
    if _asks_which_most(*texts) or _asks_which_most(*texts[::-1]):
        return True
    one, other = _around_how(c.one.text), _around_how(c.other.text)
    if one and other:
        return _fronts(one, other) or _fronts(other, one)
    acts = [_act(side.text) for side in (c.one, c.other)]
    return bool(acts[0]) and acts[0] == acts[1]


def _asks_which_most(before: str, behind: str) -> bool:
    """Say whether "中国最长的河是哪条" is asked, and then "中国哪条河最长"."""
    one, other = _WHICH_IS_MOST.fullmatch(before), _WHICH_MOST.fullmatch(behind)
    if one is None or other is None:
        return False
    known, most, thing = one.groups()
    place, is_about, as_much = other.groups()
    measured = is_about.removeprefix(thing)
    return is_about.startswith(thing) and known == place + measured and most == as_much


_KIND = "一?[个位名只条座种颗张本件家所门支部台辆棵块片]"
_WHICH_IS_MOST = re.compile(rf"(.{{1,12}}?)(最[^的]{{1,3}})的([^的是]{{1,6}})是(?:哪{_KIND}|谁)")
_WHICH_MOST = re.compile(rf"(.{{1,8}}?)的?哪{_KIND}([^的是]{{1,10}}?)(最[^的]{{1,3}})")


def _act(text: str) -> str:
    """Return what someone did to what: of "谁发明了电话" and "电话是谁发明的" the same."""
    plain = unified(text).strip("?？!！。 ")
    asked = _BY_WHOM.fullmatch(plain)
    if asked is not None:
        return asked[2] + asked[1]
    asked = _WHO.fullmatch(plain)
    return asked[1].replace("了", "", 1) if asked is not None else ""


_WHO = re.compile(r"(?:是)?谁(?!是|的|和|跟|比)(.{3,16}?)的?")
_BY_WHOM = re.compile(r"([^谁是的]{2,12})(?:最早|最先)?是(?:由|被)?谁([^谁是的]{1,6})的")


def turned_word(c: Comparison) -> Finding | None:
    """Two signs side by side changed places, which makes another word ("故事", "事故")."""
    if c.one.language != "zh" or len(c.one.text) > _LONGEST or c.only_one or c.only_other:
        return None
    one, other = (_BREAKS.sub("", unified(normalise(s.text))) for s in (c.one, c.other))
    if len(one) != len(other):
        return None
    places = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(places) != len("ab") or places[1] != places[0] + 1:
        return None
    here, there = (text[places[0] : places[0] + 2] for text in (one, other))
    return difference(c, [here], [there]) if here == there[::-1] else None


def denies_otherwise(c: Comparison) -> bool:
    """Say whether each text denies something, and not the same."""
    one, other = _denied(c.one.text), _denied(c.other.text)
    return bool(one and other) and one.isdisjoint(other)


def sign(c: Comparison) -> Finding | None:
    """One asks of a sign of a word, the other of the word, or of another sign."""
    one, other = _signs(c.one.text), _signs(c.other.text)
    return None if one == other else difference(c, one, other)


def _denied(text: str) -> frozenset[str]:
    return frozenset(_DENIAL.findall(A_NOT_A.sub(r"\1", unified(text))))


def _around_how(text: str) -> tuple[str, ...]:
    """Return what stands before and behind "how", all other joints left out; () without both."""
    plain = _BREAKS.sub("", unified(text)).rstrip("啊呀呢吧嘛啦")
    if plain.count(_HOW) != 1 or _STATE.search(plain):
        return ()
    return tuple(plain.split(_HOW))


def _fronts(here: tuple[str, ...], there: tuple[str, ...]) -> bool:
    """Say whether the last thing of ``here`` stands before "how" there."""
    (before, behind), (earlier, act) = here, there
    thing = earlier.removeprefix(before)
    if not earlier.startswith(before) or len(thing) < _LEAST_THING or not act:
        return False
    return behind == act + thing or (_is_tool(thing) and behind.replace(thing, "", 1) == act)


def _is_tool(thing: str) -> bool:
    """Say whether a thing is where something is done, not what it is done to or by."""
    return any(found.name in _TOOLS for found in chinese().sets.get(thing, ()))


_TOOLS = frozenset({"软件", "平台", "系统"})


def _signs(text: str) -> frozenset[str]:
    plain = simplified(normalise(text))
    return frozenset(m[1] for m in _SIGN.finditer(plain) if m[1] in plain[: m.start()])
