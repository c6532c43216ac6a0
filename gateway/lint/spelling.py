"""One way to write texts that differ in what nobody reads: a mend that is harmless. Pure.

That is the ends of lines, blank lines between paragraphs, and the two Unicode spellings of one
character. Indentation, spaces within lines, code, YAML and JSON are never touched.
"""

import unicodedata

from gateway.lint.fence import lines_of_prose

MIN_LINE_CHARS = 24
MAX_FORMS = 10_000


class Spelling:
    """Gives equal texts the form in which they were met first: of the whole, else of each line."""

    def __init__(self) -> None:
        self._forms: dict[str, str] = {}

    def first_form(self, text: str) -> str:
        """Return the text as an equal one was written first."""
        keys = _keys(text)
        whole = "\n".join(_without_blank_runs(keys))
        if whole in self._forms:
            return self._forms[whole]
        lines = text.split("\n")
        for at, (line, (key, is_prose)) in enumerate(zip(lines, keys, strict=True)):
            if is_prose and len(line) > MIN_LINE_CHARS:
                lines[at] = self._forms.setdefault(f"\0{key}", line)
        written = "\n".join(lines)
        if len(self._forms) < MAX_FORMS:
            self._forms[whole] = written
        return written


def _keys(text: str) -> list[tuple[str, bool]]:
    lines = text.split("\n")
    prose = lines_of_prose(lines)
    return [
        (unicodedata.normalize("NFC", line).rstrip() if is_prose else line, is_prose)
        for line, is_prose in zip(lines, prose, strict=True)
    ]


def _without_blank_runs(keys: list[tuple[str, bool]]) -> list[str]:
    kept: list[str] = []
    for key, is_prose in keys:
        if not (is_prose and not key and (not kept or not kept[-1])):
            kept.append(key)
    while kept and not kept[-1]:
        kept.pop()
    return kept
