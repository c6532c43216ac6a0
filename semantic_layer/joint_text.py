"""How a text is written before it is compared: what never changes an answer is taken out. Pure."""

from functools import cache

from semantic_layer.resources import load_lines
from semantic_layer.script import normalise


def prepare(text: str) -> str:
    """Unify compatibility forms, case, quotation marks, spaces and Chinese script."""
    return normalise(text).casefold().translate(_simplified())


@cache
def _simplified() -> dict[int, str]:
    pairs = " ".join(load_lines("traditional.zh.txt")).split()
    return {ord(pair[0]): pair[1] for pair in pairs}
