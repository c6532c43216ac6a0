"""How a text is written before it is compared: what never changes an answer is taken out. Pure."""

import re
from functools import lru_cache

from semantic_layer.text.script import plain_of

_REPEATED = re.compile(r"([?!.。？！])\1+")


@lru_cache(maxsize=4_096)  # texts are asked whether they fit, and then read
def prepare(text: str) -> str:
    """Unify compatibility forms, case, quotation marks, spaces, repeated marks and script."""
    return _REPEATED.sub(r"\1", plain_of(text))
