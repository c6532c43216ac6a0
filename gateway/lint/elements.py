"""Documents that a text marks up one behind the other, as in ``<document id="a">…``. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_ELEMENTS = 400
MIN_ELEMENTS = 2

_OPENS = re.compile(
    r"<(documents?|doc|passage|chunk|source|snippet|context|result|item|article|page|text|excerpt|"
    r"search_result|file|dokument|quelle|documento|fuente)\b[^<>\n]{0,200}>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Element:
    """Where an element begins and ends, and where in it its opening tag ends."""

    name: str
    start: int
    inner: int
    end: int


def listed_elements(text: str) -> list[Element]:
    """Return the first elements of one name that have nothing but space between them."""
    found: list[Element] = []
    for part in _elements(text):
        follows = found and part.name == found[-1].name
        if not follows or text[found[-1].end : part.start].strip():
            if len(found) >= MIN_ELEMENTS:
                break
            found = []
        found.append(part)
        if len(found) == MAX_ELEMENTS:
            break
    return found if len(found) >= MIN_ELEMENTS else []


def split_tag(block: str) -> tuple[str, str] | None:
    """Part a block that is one element behind its opening tag; None where it is none."""
    found = _OPENS.match(block)
    if found is None or not block.rstrip().endswith(f"</{found[1]}>"):
        return None
    return block[: found.end()], block[found.end() :]


def _elements(text: str) -> Iterator[Element]:
    """Give elements; a list of elements, such as ``<documents>``, gives those in it."""
    at = 0
    unclosed: set[str] = set()
    while (found := _OPENS.search(text, at)) is not None:
        at = found.end()
        name = found[1]
        if name in unclosed or name.lower().endswith("documents"):
            continue
        close = text.find(f"</{name}>", at)
        if close < 0:
            unclosed.add(name)
            continue
        yield Element(name, found.start(), at, close + len(name) + 3)
        at = close + len(name) + 3
