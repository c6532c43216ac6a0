"""How a text is written before it is compared: what never changes an answer is taken out. Pure."""

from semantic_layer.script import normalise, simplified


def prepare(text: str) -> str:
    """Unify compatibility forms, case, quotation marks, spaces and Chinese script."""
    return simplified(normalise(text).casefold())
