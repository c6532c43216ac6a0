"""Lines of code in a prompt's text. Pure."""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"\s*(?:```|~~~)")
_DATA = re.compile(r"\s|[-\"{}\[\]<|]|[\w.-]+\s*[:=]")


def is_fence(line: str) -> bool:
    """Say whether fenced code begins or ends here."""
    return _FENCE.match(line) is not None


def may_go_on(text: str) -> bool:
    """Say whether a paragraph behind a text is none of its data: JSON, markup, or open code."""
    is_open = sum(map(is_fence, text.split("\n"))) % 2
    return not is_open and not text.lstrip().startswith(("{", "[", "<"))


def lines_of_prose(lines: list[str]) -> Iterator[bool]:
    """Say of each line whether it is prose: not fenced, indented, nor like YAML or JSON."""
    in_fence = False
    for line in lines:
        if is_fence(line):
            in_fence = not in_fence
            yield False
        else:
            yield not in_fence and (not line.strip() or not _DATA.match(line))
