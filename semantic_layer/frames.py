"""What kind of thing an English question asks for, and the words that only say so. Pure."""

import re

_SUBJECT = r"(?:i|you|we|one|someone|anyone|people|a person|they)"
_BEST = r"(?:best |easiest |right |correct |proper |simplest |most effective |good |effective )?"
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("how", rf"(?:can|could) you (?:please )?(?:tell|show|teach|explain to) me how (?:to|{_SUBJECT} (?:can|could|should))"),
    ("how", r"(?:tell|show|teach|explain to) me how to"),
    ("how", rf"what (?:is|are|would be) the {_BEST}(?:way|ways|method|methods|process|procedure) (?:to|of|for)"),
    ("how", rf"what (?:is|are) (?:some |a |an )?{_BEST}(?:way|ways|method|methods) (?:to|of|for)"),
    ("how", r"what are the (?:necessary )?steps (?:to|for|in|involved in)"),
    ("how", rf"what (?:should|can|must|do|would) {_SUBJECT} (?:need to |have to )?do (?:to|in order to)"),
    ("how", rf"which is the {_BEST}way (?:to|of)"),
    ("how", r"(?:is|are) there (?:a|any|some) (?:way|ways|method) (?:to|of|that i can)"),
    ("how", r"(?:the )?(?:way|steps|instructions|guide|process) (?:to|for)"),
    ("how", rf"how (?:do|does|did|can|could|would|should|might|will|to|is|are|am|was|were|have|has)(?: {_SUBJECT} go about)?"),
    ("how", r"explain how(?: to)?"),
    ("why", r"what (?:is|are|was|were) the (?:reason|reasons|cause|causes) (?:that|why|for|behind|of)"),
    ("why", r"(?:for )?what reason"),
    ("why", r"how come"),
    ("why", r"why"),
    ("when", r"(?:at |by |on |in )?what (?:time|date|year|day|month)(?: of (?:day|year))?"),
    ("when", r"when"),
    ("where", r"(?:in |at |to |from )?(?:what|which) (?:place|location)"),
    ("where", r"where"),
    ("who", r"(?:what|which) person|who|whom|whose"),
    ("howmany", r"how many|what (?:is|was) the (?:total )?number of"),
    ("what", r"how much (?=(?:is|are|does|do|did|was|were|will|would) .*\b(?:cost|costs|charge|price|worth|fee)\b)"),
    ("howmuch", r"how much"),
    ("howlong", r"how long"),
    ("howoften", r"how (?:often|frequently)"),
    ("howsoon", r"how (?:soon|quickly|fast)"),
    ("which", r"which"),
    ("what", r"(?:can|could) you (?:please )?(?:tell|give|explain|show) me (?:what|the)(?: (?:is|are))?"),
    ("what", r"(?:tell|give|show) me (?:about |what )?"),
    ("what", r"i (?:want|would like|need) to know (?:about |what )?"),
    ("what", r"what"),
)  # fmt: skip
_FRAMES = tuple((name, re.compile(rf"(?<!\S){pattern}(?!\S)")) for name, pattern in _PATTERNS)
_YES_NO = frozenset(
    "is are am was were do does did can could will would shall should may might must has have had "
    "am".split()
)


def find_frame(lowers: list[str], starts: list[int]) -> tuple[str, frozenset[int]]:
    """Return the frame of a question and the indices of the words that only make it.

    Frames: how, why, when, where, who, howmany, howmuch, …, which, what, yesno, and "" for the
    rest (orders, statements, key words). ``starts`` are the indices where a clause begins.
    """
    joined = " ".join(lowers)
    best: tuple[int, int, str, int] | None = None
    for name, pattern in _FRAMES:
        match = pattern.search(joined)
        if match is not None and (best is None or (match.start(), -match.end()) < best[:2]):
            best = (match.start(), -match.end(), name, match.end())
    first_yes_no = any(lowers[i] in _YES_NO for i in starts)
    opens = bool(lowers) and lowers[0] in _YES_NO
    if best is not None and not (opens and best[0] > 0 and best[2] != "how"):
        first = joined[: best[0]].count(" ")
        return best[2], frozenset(
            range(first, first + joined[best[0] : best[3]].strip().count(" ") + 1)
        )
    return ("yesno" if first_yes_no else ""), frozenset()
