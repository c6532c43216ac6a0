"""How a text is written before it is compared: what never changes an answer is taken out. Pure."""

import re

from semantic_layer.text.script import plain_of

_REPEATED = re.compile(r"([?!.。？！])\1+")


def prepare(text: str) -> str:
    """Unify compatibility forms, case, quotation marks, spaces, repeated marks and script."""
    return _REPEATED.sub(r"\1", plain_of(text))
