"""What of a user's message a retriever put there, and may stand in another order. Pure.

Only paragraphs and lines that are long and are no steps, beside text of the user's own that does
not speak of their order. In doubt nothing moves.
"""

import re
import unicodedata
from collections.abc import Sequence

MIN_PASSAGE = 60  # characters; one of a wide script counts three times
MIN_NUMBERED = 160  # of a passage behind a plain number, which is how steps are written

_STEP = re.compile(
    r"(?:step|schritt|paso|passo|étape|шаг|步骤|步驟|第|手順|단계)\W*\d|"
    r"(?:first|firstly|second|secondly|third|thirdly|then|next|afterwards|finally|lastly|"
    r"erstens|zweitens|zuerst|dann|danach|anschließend|schließlich|zuletzt|"
    r"primero|luego|después|finalmente|por último|primeiro|depois|d'abord|ensuite|puis|enfin|"
    r"сначала|затем|потом|наконец)\b|"
    r"首先|然后|然後|接着|接著|最后|最後|其次|まず|次に|먼저|그다음|다음|마지막",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"^\s*\(?\d{1,4}\s*[.):、]|^\s*[a-z]\s*[.)]", re.IGNORECASE)
_PART = (
    r"(?:one|ones|two|passage|document|doc|paragraph|text|source|chunk|step|item|line|sentence|"
    r"excerpt|option|entry|article|section)s?"
)
_ORDER = re.compile(
    rf"\b(?:first|second|third|fourth|fifth|last|next|previous|above|below|top|bottom)\s+{_PART}\b|"
    r"\b(?:in|into|what|which|right|correct|wrong|chronological|alphabetical|logical|given|this|"
    r"proper|same|original)\s+order\b|\border\s+(?:these|of|the|them|by)\b|\breorder|\brearrange|"
    r"\barrange|\bsort(?:ed|ing)?\b|\brank(?:ed|ing)?\b|\bsequence|\bsteps?\b|\bchronolog|"
    r"reihenfolge|sortier|ordne\b|schritt|(?:erste|letzte)[rsn]? (?:absatz|text|quelle)|"
    r"\borden(?:a|ar|e|en)?\b|secuencia|\bpasos?\b|ordem|ordena|sequência|\bpassos?\b|"
    r"dans l'ordre|l'ordre|trie[rz]?\b|classe[rz]?\b|étapes?|порядк|сортир|упоряд|\bшаг|"
    r"последовательн|"
    r"顺序|順序|排序|排列|步骤|步驟|第[一二三四五1-5]|最后一|並べ|順番|手順|最初の|最後の|순서|정렬|단계|"
    r"첫 ?번째|두 ?번째|마지막",
    re.IGNORECASE,
)


def may_move(moving: Sequence[tuple[str, str]], own: str) -> bool:
    """Say whether blocks, each with the rank before it, are passages beside a user's ``own`` text.

    A message of nothing else is the user's own.
    """
    return (
        bool(own.strip())
        and not _ORDER.search(own)
        and all(_is_passage(rank, block) for rank, block in moving)
    )


def _is_passage(rank: str, block: str) -> bool:
    least = MIN_NUMBERED if _NUMBER.match(rank) else MIN_PASSAGE
    return _size(block) >= least and not _STEP.match(f"{rank}{block}".lstrip(" \n-*•"))


def _size(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + 2 * wide
