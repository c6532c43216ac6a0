"""What kind of request a text is, by its words alone. Knows no model."""

import re
from collections.abc import Callable
from functools import cache

from semantic_layer.resources import LANGUAGES, load_json
from semantic_layer.vector_index import Vector

GENERAL = "general"
INTENTS = ("factual", "code", "translation", "summarization", "creative", GENERAL)

DetectIntent = Callable[[str, Vector | None], str]
_HEAD_CHARS = 600  # the task stands at either end of a long text
_TAIL_CHARS = 200


def detect_intent(text: str, _: Vector | None = None) -> str:
    """Return the seed intent whose cues weigh most; ties go to the more specific one."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = text[:_HEAD_CHARS] + "\n" + text[-_TAIL_CHARS:]
    weights = dict.fromkeys(INTENTS, 0)
    for intent, weight, pattern in _cues():
        if pattern.search(text):
            weights[intent] += weight
    best = max(_BY_SPECIFICITY, key=lambda intent: weights[intent])
    return best if weights[best] else GENERAL


_BY_SPECIFICITY = ("translation", "summarization", "code", "creative", "factual")


@cache
def _cues() -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    return tuple(
        (intent, int(weight), re.compile(pattern, re.IGNORECASE))
        for language in LANGUAGES
        for intent, by_weight in load_json(f"intents.{language}.json").items()
        for weight, patterns in by_weight.items()
        for pattern in patterns
    )
