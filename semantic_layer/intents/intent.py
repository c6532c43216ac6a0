"""What kind of request a text is, by its words alone. Knows no model."""

import re
from collections.abc import Callable, Mapping
from functools import cache

from semantic_layer.intents.intent_rules import PERSONAL, TIME_SENSITIVE, TRANSACTIONAL
from semantic_layer.resources import LANGUAGES, load_json
from semantic_layer.stores.vector_index import Vector

GENERAL = "general"
SPECIAL = (TIME_SENSITIVE, PERSONAL, TRANSACTIONAL)
INTENTS = ("factual", "code", "translation", "summarization", "creative", GENERAL, *SPECIAL)
ASKING_HOW = "asking_how"
CUES = (*(intent for intent in INTENTS if intent != GENERAL), ASKING_HOW)

DetectIntent = Callable[[str, Vector | None], str]
_HEAD_CHARS = 600  # the task stands at either end of a long text
_TAIL_CHARS = 200
_BY_SPECIFICITY = (
    *("translation", "summarization", "code", "creative"),
    *(TIME_SENSITIVE, PERSONAL, TRANSACTIONAL, "factual"),
)
_STRONG = 4  # one plain cue of a special intent; weak ones alone mean little


def detect_intent(text: str, _: Vector | None = None) -> str:
    """Return the seed intent whose cues weigh most; ties go to the more specific one."""
    weights = cue_weights(text)
    if all(weights[intent] < _STRONG or weights[ASKING_HOW] for intent in SPECIAL):
        weights = {**weights, **dict.fromkeys(SPECIAL, 0)}
    best = max(_BY_SPECIFICITY, key=lambda intent: weights[intent])
    return best if weights[best] else GENERAL


def cue_weights(text: str) -> Mapping[str, int]:
    """Return the summed weight of the cues of each of `CUES` that the text has."""
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        text = text[:_HEAD_CHARS] + "\n" + text[-_TAIL_CHARS:]
    weights = dict.fromkeys(CUES, 0)
    for cue, weight, pattern in _patterns():
        if pattern.search(text):
            weights[cue] += weight
    return weights


@cache
def _patterns() -> tuple[tuple[str, int, re.Pattern[str]], ...]:
    return tuple(
        (cue, int(weight), re.compile(pattern, re.IGNORECASE))
        for language in LANGUAGES
        for cue, by_weight in load_json(f"intents.{language}.json").items()
        for weight, patterns in by_weight.items()
        for pattern in patterns
    )
