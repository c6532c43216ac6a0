"""What other parts say in English, in the language of a page.

A saying has its values apart. A text that was put together before, such as a recorded reason, is
read by the sentence that it follows. What has no translation stays as it is.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from gateway.said import Saying, told

FOLDER = Path(__file__).with_name("messages")
MOST_CHARS = 600  # of a text that is read by its sentence: reading takes longer than it is long
_PLACE = re.compile(r"\{(\w+)\}")


class Sentences:
    """English sentences and what they are in another language, by their text."""

    def __init__(self, sentences: Mapping[str, str], details: Mapping[str, str]) -> None:
        self._sentences = {**sentences, **details}
        self._patterns = [(_pattern(text), said) for text, said in details.items() if "{" in text]

    def say(self, saying: Saying) -> str:
        """Return a saying."""
        return told(saying, self.translated)

    def translated(self, text: str) -> str:
        """Return a sentence, or a text that follows one; else the text itself."""
        known = self._sentences.get(text)
        return self._followed(text) if known is None else known

    def _followed(self, text: str) -> str:
        for pattern, said in self._patterns if len(text) <= MOST_CHARS else ():
            found = pattern.fullmatch(text)
            if found is not None:
                values = {name: self.translated(value) for name, value in found.groupdict().items()}
                return said.format_map(values)
        return text


@cache
def sentences_in(language: str) -> Sentences:
    """Return the sentences of a language; of English there is nothing to translate."""
    path = FOLDER / f"{language}.said.json"
    if not path.exists():
        return Sentences({}, {})
    texts = json.loads(path.read_text("utf-8"))
    return Sentences(texts["sentences"], texts["details"])


def _pattern(text: str) -> re.Pattern[str]:
    """Return what texts that follow a sentence look like; a place takes as little as it can."""
    pieces = _PLACE.split(text)
    read = [f"(?P<{piece}>.+?)" if at % 2 else re.escape(piece) for at, piece in enumerate(pieces)]
    return re.compile("".join(read), re.DOTALL)
