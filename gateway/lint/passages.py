"""What of a message a retriever put there, and may stand in another order. Pure.

Only paragraphs and lines that are long and are no steps, bear no number, date or speaker, beside
text that does not speak of their order. In doubt nothing moves.
"""

import re
import unicodedata
from collections.abc import Sequence

from gateway.lint.elements import split_tag
from gateway.lint.order import is_example_or_document

MIN_PASSAGE = 60  # characters; one of a wide script counts three times
HEAD_CHARS = 32  # in which a number or date would stand

_STEP = re.compile(
    r"(?:step|schritt|paso|passo|étape|шаг|步骤|步驟|第|手順|단계)\W*\d|"
    r"(?:first|firstly|second|secondly|third|thirdly|then|next|afterwards|finally|lastly|"
    r"erstens|zweitens|zuerst|dann|danach|anschließend|schließlich|zuletzt|"
    r"primero|luego|después|finalmente|por último|primeiro|depois|d'abord|ensuite|puis|enfin|"
    r"сначала|затем|потом|наконец)\b|"
    r"首先|然后|然後|接着|接著|最后|最後|其次|まず|次に|먼저|그다음|다음|마지막",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"\W*[^\W\d][^\n:：]{0,40}[:：]")
_PART = (
    r"(?:one|ones|two|passage|document|doc|paragraph|text|source|chunk|step|item|line|sentence|"
    r"excerpt|option|entry|article|section|key|field|property|value|setting|row|record)s?"
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
_KEYS = re.compile(
    r"\b(?:first|second|third|last|next|topmost)\s+(?:\w+\s+)?(?:keys?|fields?|propert\w+|pairs?|"
    r"names?|attributes?|that|which|of|match\w*|fit\w*|applicable|applies)\b|"
    r"\bfrom (?:the )?(?:top|left)\b|\btop to bottom\b|\bpreceden|\bpriorit|"
    r"(?:erste|zweite|letzte)[rsnm]? (?:schlüssel|feld|eintrag|wert|passende)|"
    r"(?:premi(?:er|ère)|derni(?:er|ère)) (?:clé|champ|valeur)|"
    r"(?:primer[ao]?|últim[ao]) (?:clave|campo|valor|chave)|перв\w+ (?:ключ|поле|знач)|"
    r"第一|首个|优先|最初|最後|优先级|첫",
    re.IGNORECASE,
)
_SAYS_ORDER = re.compile(
    r"most relevant|by (?:relevance|date|score|importance)|\b(?:ordered|sorted|ranked)\b|"
    r"\bin (?:\w+ ){0,2}order\b|\border of\b|chronolog|"
    r"(?:relevant|newest|oldest|latest|earliest|best|last)\W+first|"
    r"sortiert|reihenfolge|relevanz|neueste|älteste|orden de|ordenad|par ordre|trié|classé|"
    r"порядк|отсортир|顺序|順序|依次|先后|排序|排列|最相关|相关性|相关度|関連度|順番|순서",
    re.IGNORECASE,
)
_THREAD = re.compile(
    r"\b(?:thread|e-?mails?|mails|transcript|conversation|chat|dialog(?:ue)?|timeline|diary|log|"
    r"history|story|chapters?|newest|oldest|latest|earliest|verlauf|gespräch|protokoll)\b|"
    r"对话|聊天|邮件|记录|会話",
    re.IGNORECASE,
)
_CITES = re.compile(
    r"[\[(（【]\s*#?\d{1,3}\s*[\])）】]|"
    r"\b(?:source|passage|document|doc|result|text|paragraph|excerpt|chunk|item|section|snippet|"
    r"quelle|absatz|dokument|abschnitt|fuente|documento|párrafo|документ|источник)s?\s*"
    r"(?:no\.?|nr\.?|#)?\s*\d|"
    r"\b(?:first|second|third|fourth|fifth|last|former|latter)\b|\b(?:erste|zweite|dritte|letzte)|"
    r"第[一二三四五六七八九十\d]",
    re.IGNORECASE,
)


def may_move(moving: Sequence[str], own: str) -> bool:
    """Say whether whole blocks are passages beside an ``own`` text, which may not be empty."""
    return (
        bool(own.strip())
        and not any(speaks.search(own) for speaks in (_ORDER, _SAYS_ORDER, _THREAD))
        and all(map(_is_passage, moving))
    )


def says_order(text: str) -> bool:
    """Say whether a text, such as a system prompt, tells that passages have an order."""
    return _SAYS_ORDER.search(text) is not None


def may_order_keys(instructions: str) -> bool:
    """Say whether no instruction, such as "the first key", can count on an order of keys."""
    return not any(speaks.search(instructions) for speaks in (_ORDER, _SAYS_ORDER, _KEYS))


def cites(text: str) -> bool:
    """Say whether a message may refer to a passage by its number or place."""
    return _CITES.search(text) is not None


def _is_passage(block: str) -> bool:
    _, block = split_tag(block) or ("", block)
    if _size(block) < MIN_PASSAGE or _STEP.match(block.lstrip(" \n-*•")):
        return False
    if any(char.isdigit() for char in block.strip()[:HEAD_CHARS]):
        return False
    speaker = _SPEAKER.match(block)
    return speaker is None or is_example_or_document(speaker[0])


def _size(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + 2 * wide
