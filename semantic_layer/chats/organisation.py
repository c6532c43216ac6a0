"""Who "we" are where an answer rests on named documents: those whom the documents are about. Pure.

Without documents "our refund window" may be that of the user's own group.
"""

import re

_US = re.compile(r"\b(?:we(?:['’](?:re|ve|d|ll))?|us|ours?|ourselves)\b", re.IGNORECASE)
_US_ZH = re.compile(r"我们的?|咱们的?|我司|本公司")
_ONE = re.compile(r"\b(?:i|i['’](?:m|ve|d|ll)|me|my|mine|myself)\b", re.IGNORECASE)
_ONE_ZH = re.compile(r"[我俺](?!们|司)|本人|自己")


def speaks_of_us(text: str) -> bool:
    """Say whether a text says "we" or "our"."""
    return bool(_US.search(text) or _US_ZH.search(text))


def speaks_of_oneself(text: str) -> bool:
    """Say whether a text says "I" or "my"."""
    return bool(_ONE.search(text) or _ONE_ZH.search(text))


def without_us(text: str) -> str:
    """Return a text as it is without who "we" are."""
    return " ".join(_US_ZH.sub("", _US.sub(" ", text)).split())
