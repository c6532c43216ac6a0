"""The part of a cut JSON object that is certain, as Anthropic's SDKs read it from a stream."""

import json
from typing import Any

MAX_DEPTH = 256
MAX_TRIES = 32

_CLOSING = {"{": "}", "[": "]"}


def partial_object(text: str) -> dict[str, Any]:
    """Return the longest complete part of an object whose end is missing; empty if none is."""
    for end, closing in reversed(_cuts(text)[-MAX_TRIES:]):
        try:
            found = json.loads(text[:end] + closing)
        except ValueError:
            continue
        return found if isinstance(found, dict) else {}
    return {}


def _cuts(text: str) -> list[tuple[int, str]]:
    """Return every place behind a value, and the brackets that close what is open there."""
    cuts: list[tuple[int, str]] = []
    closing = ""
    in_string = is_escaped = False
    for at, char in enumerate(text):
        if in_string:
            in_string = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
            if not in_string:
                cuts.append((at + 1, closing))
        elif char == '"':
            in_string = True
        elif char == ",":
            cuts.append((at, closing))
        elif char in "{[}]":
            closing = _CLOSING[char] + closing if char in _CLOSING else closing[1:]
            cuts.append((at + 1, closing))
            if len(closing) > MAX_DEPTH:
                return []
    return cuts
