"""What is asked of one thing: which act of a tool, the k-th of some or k of them. Pure."""

import re
from functools import cache

from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.finding import Finding, difference
from semantic_layer.resources import load_lines
from semantic_layer.text.script import fold


def command(c: Comparison) -> Finding | None:
    """One asks of an act of a tool, the other of another ("git add", "a commit in git")."""
    words = [frozenset(_WORD.findall(fold(side.text))) for side in (c.one, c.other)]
    for tool in words[0] & words[1] & _commands().keys():
        acts = _commands()[tool]
        one, other = ({acts[word] for word in said & acts.keys()} for said in words)
        if one - other and other - one:
            return difference(c, one - other, other - one)
    return None


_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")


@cache
def _commands() -> dict[str, dict[str, str]]:
    """Map each tool to the forms of its acts, each of them to the act."""
    lines = (line.partition(":") for line in load_lines("commands.txt"))
    return {
        tool.strip(): {form: act for act in acts.split() for form in _forms(act)}
        for tool, _, acts in lines
    }


def _forms(act: str) -> set[str]:
    """Return what stands for an act in a sentence: "stash", "stashes", "stashed", "stashing"."""
    root = act.removesuffix("e")
    doubled = act + act[-1]
    plain = {act, f"{act}s", f"{act}es"}
    return plain | {f"{start}{end}" for start in (root, act, doubled) for end in ("ed", "ing")}


def rank(c: Comparison) -> Finding | None:
    """One asks for the k-th of some, the other for k of them."""
    one, other = _rank(c.one.text), _rank(c.other.text)
    return difference(c, {one}, {other}) if one and other and one != other else None


def _rank(text: str) -> str:
    plain = fold(text)
    if _PLACE.search(plain):
        return "k-th"
    return "k" if _NUMBER.search(plain) else ""


_PLACE = re.compile(r"\b[kn][ -]?th\b|第 ?[kn](?![a-z])")
_NUMBER = re.compile(
    r"\b[kn] \w*(?:est|most|least)\b|\b(?:top|first|last) [kn]\b|前 ?[kn](?![a-z])"
)
