"""The dashboard's languages: one catalogue of messages each."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gateway.dashboard.sentences import sentences_in
from gateway.said import Saying

FOLDER = Path(__file__).with_name("messages")
LANGUAGES = {"en": "English", "zh": "中文"}
DEFAULT = "en"


class Messages:
    """The messages of one language; called with a key and what its braces stand for."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = catalogue(language)
        self._sentences = sentences_in(language)

    def __call__(self, key: str, **values: Any) -> str:
        """Return the message; KeyError for one that is not in the catalogue."""
        return self._texts[key].format(**values)

    def __contains__(self, key: str) -> bool:
        return key in self._texts

    def say(self, saying: Saying) -> str:
        """Return what another part says in English; without a translation as it is."""
        return self._sentences.say(saying)

    def text(self, text: str) -> str:
        """Return an English text of another part that was put together before."""
        return self._sentences.translated(text)

    def name(self, group: str, value: Any) -> str:
        """Return what a value of the API is called; the value itself where it has no name."""
        return self._texts.get(f"{group}.{value}", str(value))


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return a language's messages by key."""
    texts: Mapping[str, str] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return texts


def language_of(asked: str | None, kept: str | None, accepted: str) -> str:
    """Return the first known of what is asked for, kept in a cookie and accepted by the browser."""
    for wanted in (asked, kept):
        if wanted in LANGUAGES:
            return str(wanted)
    return _best(accepted)


def _best(accepted: str) -> str:
    """Return the known language that ``Accept-Language`` weighs most (RFC 9110, 12.5.4)."""
    weighed: list[tuple[float, str]] = []
    for row in accepted.split(","):
        tag, _, weight = row.strip().partition(";q=")
        language = tag.partition("-")[0].lower()
        if language in LANGUAGES:
            weighed.append((-_weight(weight), language))
    weighed.sort(key=lambda pair: pair[0])
    return weighed[0][1] if weighed and weighed[0][0] < 0 else DEFAULT


def _weight(text: str) -> float:
    try:
        return float(text or 1)
    except ValueError:
        return 0.0
