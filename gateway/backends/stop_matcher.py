"""Find stop strings in text that comes in pieces, wherever the pieces are cut. Pure."""

from collections.abc import Sequence


class StopMatcher:
    """Lets text through up to the first stop string, holding back what may become one.

    The stop string that is complete first wins; of two complete at the same character, the longer.
    Each stop string is followed by its own Knuth-Morris-Pratt automaton, so the cost of a character
    does not grow with the text and the result does not depend on where the text was cut. ``stop``
    is the stop string that was found.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        assert all(stops), "a stop string is never empty"
        self._stops = tuple(stops)
        self._borders = [_borders(stop) for stop in self._stops]
        self._matched = [0] * len(self._stops)  # characters of each stop matched so far
        self._held = ""
        self.stop: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self.stop is not None

    def push(self, text: str) -> str:
        """Take more text; return what is certain to lie before any stop string."""
        assert not self.stopped, "text after a stop string"
        if not self._stops:
            return text
        held = self._held + text
        for at, char in enumerate(text, len(self._held) + 1):
            if longest := self._advance(char):
                self.stop = held[at - longest : at]
                return held[: at - longest]
        num_free = len(held) - max(self._matched)
        self._held = held[num_free:]
        return held[:num_free]

    def flush(self) -> str:
        """Return what was held back, once no more text comes."""
        held, self._held = self._held, ""
        return held

    def _advance(self, char: str) -> int:
        """Follow one character; return the length of the longest stop that it completes, or 0."""
        longest = 0
        for place, stop in enumerate(self._stops):
            matched, borders = self._matched[place], self._borders[place]
            while matched and stop[matched] != char:
                matched = borders[matched - 1]
            matched += stop[matched] == char
            self._matched[place] = matched
            if matched == len(stop):
                longest = max(longest, matched)
        return longest


def _borders(stop: str) -> list[int]:
    """Return, for each prefix, the length of its longest border (prefix that is also a suffix)."""
    borders = [0] * len(stop)
    length = 0
    for at in range(1, len(stop)):
        while length and stop[at] != stop[length]:
            length = borders[length - 1]
        length += stop[at] == stop[length]
        borders[at] = length
    return borders
