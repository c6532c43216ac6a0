"""Made-up text that no two calls give alike; the same for the same seed."""

import random

_BEGINNINGS = ("b", "br", "c", "d", "dr", "f", "g", "gr", "h", "l", "m", "p", "r", "s", "st", "t")
_MIDDLES = ("a", "ai", "e", "ea", "i", "o", "oo", "u")
_ENDINGS = ("ck", "d", "l", "ll", "m", "n", "nd", "ng", "r", "rt", "s", "st", "t")
_SENTENCE = 12


class Words:
    """A stream of generated words."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - a load, not a secret

    def text(self, num_words: int) -> str:
        """Make sentences of this many words."""
        words = [self._word() for _ in range(num_words)]
        sentences = [words[i : i + _SENTENCE] for i in range(0, num_words, _SENTENCE)]
        return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)

    def _word(self) -> str:
        parts = (self.rng.choice(part) for part in (_BEGINNINGS, _MIDDLES, _ENDINGS))
        return "".join(parts)
