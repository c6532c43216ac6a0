"""Pairs of texts for tests, and a vocabulary that knows all their words but two."""


def both_ways(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each pair as it is and turned round."""
    return [pair for one, other in pairs for pair in ((one, other), (other, one))]


def knows_word(word: str) -> bool:
    """Say whether a word is not misspelt."""
    return word not in {"flie", "conection"}
