"""Blocks of text in another order, such as retrieved chunks or worked examples. Pure."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from gateway.lint.elements import listed_elements, split_tag

BlockOrder = Literal["retrieval_order", "few_shot_order", "line_order"]

MIN_BLOCK_CHARS = 12
LONG_BLOCK_CHARS = 120  # a paragraph like this is no rule of a list
HEADER_CHARS = 160
MAX_BLOCKS = 400
MAX_HEAD_CHARS = 60

Cut = Callable[[str], tuple[list[str], list[str]]]

_PARAGRAPHS = re.compile(r"\n\s*\n|\n-{3,}\s*\n")
_LINES = re.compile(r"\n")
_HEADS = (
    re.compile(r"[:：][ \t]*(\n)(?=\S)"),
    re.compile(r"^#{1,6} [^\n]+(\n)(?=\S)", re.MULTILINE),
)
_RANK = re.compile(
    r"^\s*(?:[^\W\d]{1,16}\s*)?[\[(（【#第]?\s*\d{1,4}\s*[\])）】.:：、篇条]*\s*"
    r"(?:[\[(（【]?\s*(?:score|relevance|similarity|distance|confidence|rank|relevanz|ähnlichkeit|"
    r"puntuación|relevancia|pertinence|相似度|相关度|得分|分数|スコア|유사도|점수)\W{0,3}\d[\d.,]*\s?%?"
    r"\s*[\])）】]*\s*[:：.,;–-]*\s*)?",
    re.IGNORECASE,
)
_EXAMPLE_NAMES = (
    r"examples?\b|beispiele?\b|exemples?\b|ejemplos?\b|exemplos?\b|esempi\w?\b|пример|示例|例子|"
    r"例[:：0-9一二三]|例題|예시|مثال|उदाहरण"
)
_EXAMPLE = re.compile(_EXAMPLE_NAMES, re.IGNORECASE)
_EXAMPLES = re.compile(
    rf"{_EXAMPLE_NAMES}|"
    r"^\s*(?:input|output|q|a|question|answer|frage|antwort|entrada|salida|entrée|sortie|"
    r"eingabe|ausgabe|pregunta|respuesta|pergunta|resposta|domanda|risposta|réponse|输入|输出|入力|出力|问|答|问题|回答|입력|출력|вопрос|ответ)\s*\d*\s*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_DOCUMENTS = re.compile(
    r"\bdoc(?:ument)?s?\b|\bsources?\b|\bpassages?\b|\bcontext\b|\bchunks?\b|\bsnippets?\b|"
    r"\bdokumente?\b|\bquellen?\b|\bkontext\b|\bcontexte\b|\bdocumentos?\b|\bcontexto\b|"
    r"\bfuentes?\b|\bdocumenti\b|\bfonti\b|документ|источник|контекст|文档|文件|资料|上下文|片段|"
    r"参考|检索|知识|文書|資料|文脈|コンテキスト|문서|자료|مستند|وثائق|दस्तावेज़|संदर्भ|https?://",
    re.IGNORECASE,
)


def block_order(here: str, cached: str, role: str) -> tuple[BlockOrder, int] | None:
    """Name the blocks that both texts hold in another order, and where they begin in ``here``."""
    for cut in CUTS:
        ours, theirs = cut(here)[0], cut(cached)[0]
        moved = _moved([_plain(b) for b in ours], [_plain(b) for b in theirs])
        if moved:
            start = here.find(ours[moved[0]])
            blocks = [ours[at] for at in moved]
            return _kind(blocks, here[max(0, start - HEADER_CHARS) : start], role), start
    return None


def cut_elements(text: str) -> tuple[list[str], list[str]]:
    """Cut out marked-up documents that stand one behind the other; return blocks and gaps.

    What stands before and behind them are blocks too; a text with less than two has one block.
    """
    found = listed_elements(text)
    if not found:
        return [text], []
    edges = itertools.pairwise(found)
    blocks = [text[part.start : part.end] for part in found]
    return (
        [text[: found[0].start], *blocks, text[found[-1].end :]],
        ["", *(text[a.end : b.start] for a, b in edges), ""],
    )


def cut_paragraphs(text: str) -> tuple[list[str], list[str]]:
    """Cut at blank lines and rules; return the blocks and the gaps between them.

    The only heading of documents or examples is a block of its own, not part of the first of them.
    """
    heads = list(itertools.islice(_heads(text), 2))
    return _cut(text, _PARAGRAPHS, heads[0] if len(heads) == 1 else None)


def cut_lines(text: str) -> tuple[list[str], list[str]]:
    """Cut at line ends; return the blocks and the gaps between them."""
    return _cut(text, _LINES)


def split_rank(block: str) -> tuple[str, str]:
    """Part a block from the number of its rank, as in ``[3]``, or from its tag."""
    if (parts := split_tag(block)) is not None:
        return parts
    found = _RANK.match(block)
    end = found.end() if found is not None else 0
    return block[:end], block[end:]


def is_example_or_document(label: str) -> bool:
    """Say whether a label is one of worked examples or retrieved documents."""
    return any(names.search(label) for names in (_EXAMPLES, _DOCUMENTS))


def _cut(
    text: str, gap: re.Pattern[str], more: tuple[int, int] | None = None
) -> tuple[list[str], list[str]]:
    spans = [gap.span() for gap in itertools.islice(gap.finditer(text), MAX_BLOCKS - 1)]
    gaps = sorted({*spans, more}) if more is not None else spans
    starts = [0, *(end for _, end in gaps)]
    ends = [*(start for start, _ in gaps), len(text)]
    blocks = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return blocks, [text[start:end] for start, end in gaps]


def _heads(text: str) -> Iterator[tuple[int, int]]:
    """Give the line ends of short lines that head documents or examples."""
    for written in _HEADS[: 1 + ("#" in text)]:
        for found in written.finditer(text):
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.start(1)]
            if len(line) <= MAX_HEAD_CHARS and (_DOCUMENTS.search(line) or _EXAMPLE.search(line)):
                yield found.span(1)


def _plain(block: str) -> str:
    return split_rank(block)[1].strip()


CUTS: Sequence[Cut] = (cut_elements, cut_paragraphs, cut_lines)


def _moved(ours: Sequence[str], theirs: Sequence[str]) -> list[int]:
    """Return the blocks of both, by their place in ours, if they follow each other otherwise."""
    places = {block: at for at, block in enumerate(theirs)}
    shared = [
        at
        for at, block in enumerate(ours)
        if len(block) >= MIN_BLOCK_CHARS and block in places and ours.index(block) == at
    ]
    order = [places[ours[at]] for at in shared]
    first = next(
        (i for i, (a, b) in enumerate(zip(order, sorted(order), strict=True)) if a != b), None
    )
    return [] if first is None else shared[first:]


def _kind(blocks: list[str], header: str, role: str) -> BlockOrder:
    if sum(bool(_EXAMPLES.search(block)) for block in blocks) * 2 > len(blocks):
        return "few_shot_order"
    last = header.rstrip().rsplit("\n\n", 1)[-1]
    if _EXAMPLES.search(last):
        return "few_shot_order"
    is_long = sum(map(len, blocks)) > LONG_BLOCK_CHARS * len(blocks)
    if is_long or role in ("user", "tool") or any(map(_DOCUMENTS.search, [*blocks, last])):
        return "retrieval_order"
    return "line_order"
