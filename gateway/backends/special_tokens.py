"""Special tokens under names that nobody can spell, so that only a template's markup makes them.

A chat template writes ``<|im_end|>`` as text, and so can a user. Here every special token gets a
random name in the tokenizer itself; what the template wrote is renamed, what a client wrote is not.
"""

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import tokenizers


class SpecialTokens:
    """The special tokens of one tokenizer and their hidden names."""

    def __init__(self, names: list[str]) -> None:
        self._nonce = secrets.token_hex(12)
        self._hidden = {name: f"{self._nonce}s{at}z" for at, name in enumerate(names)}
        self._names = {hidden: name for name, hidden in self._hidden.items()}
        self._find = _any_of(names)
        self._find_hidden = re.compile(f"{self._nonce}s[0-9]+z")
        self._find_shield = re.compile(f"{self._nonce}c([0-9]+)z")
        self._heads = {name[:end] for name in names for end in range(1, len(name))}
        self._tails = {name[start:] for name in names for start in range(1, len(name))}
        self._all_heads, self._all_tails = tuple(self._heads), tuple(self._tails)
        self._longest = max(map(len, names), default=0)

    def rename(self, tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
        """Return the tokenizer with hidden names, and without what it adds around a text."""
        state = json.loads(tokenizer.to_str())
        for token in state["added_tokens"]:
            token["content"] = self._hidden.get(token["content"], token["content"])
        model, vocabulary = state["model"], state["model"]["vocab"]
        if isinstance(vocabulary, dict):
            model["vocab"] = {self._hidden.get(t, t): i for t, i in vocabulary.items()}
        else:
            model["vocab"] = [[self._hidden.get(t, t), score] for t, score in vocabulary]
        if (unknown := model.get("unk_token")) is not None:
            model["unk_token"] = self._hidden.get(unknown, unknown)
        state.update(post_processor=None, truncation=None, padding=None)
        return tokenizers.Tokenizer.from_str(json.dumps(state))

    @property
    def any_hidden(self) -> str:
        """The hidden name of one special token; empty when there is none."""
        return next(iter(self._names), "")

    def hidden_name(self, name: str) -> str:
        """Return the name in the tokenizer of a token's usual name."""
        return self._hidden.get(name, name)

    def hide(self, text: str) -> str:
        """Rename every special token that ``text`` spells."""
        if self._find is None:
            return text
        return self._find.sub(lambda found: self._hidden[found[0]], text)

    def show(self, text: str) -> str:
        """Give special tokens their usual names back."""
        return self._find_hidden.sub(lambda found: self._names.get(found[0], ""), text)

    def starts(self, text: str) -> Iterator[int]:
        """Give the places in a rendered text where special tokens begin."""
        return (found.start() for found in self._find_hidden.finditer(text))

    def shield(self, value: Any, shielded: list[str]) -> Any:
        """Replace what spells a special token, whole or with its surroundings, in all strings.

        The pieces go to ``shielded``; what stands for them passes through a template unchanged.
        """
        if isinstance(value, str):
            return self._shield_text(value, shielded)
        if isinstance(value, list):
            return [self.shield(item, shielded) for item in value]
        if isinstance(value, dict):
            return {k: self.shield(v, shielded) for k, v in value.items()}
        return value

    def unshield(self, text: str, shielded: list[str]) -> str:
        """Put the shielded pieces back."""
        if not shielded:
            return text
        return self._find_shield.sub(lambda found: shielded[int(found[1])], text)

    def _shield_text(self, text: str, shielded: list[str]) -> str:
        body = text.strip()
        if self._find is None or not body:
            return text
        start = text.index(body)
        head = tail = 0
        if body.startswith(self._all_tails):
            head = self._edge(body, self._tails, lambda length: body[:length])
        rest = body[head:]
        if rest.endswith(self._all_heads):
            tail = self._edge(rest, self._heads, lambda length: rest[-length:])
        middle = rest[: len(rest) - tail]
        pieces = [body[:head], middle, rest[len(middle) :]]

        def stand_in(piece: str) -> str:
            shielded.append(piece)
            return f"{self._nonce}c{len(shielded) - 1}z" if piece else ""

        inner = self._find.sub(lambda found: stand_in(found[0]), middle)
        safe = [stand_in(pieces[0]), inner, stand_in(pieces[2])]
        return text[:start] + "".join(safe) + text[start + len(body) :]

    def _edge(self, text: str, parts: set[str], cut: Callable[[int], str]) -> int:
        """Return the length of the longest part that stands at an edge of ``text``; 0 for none."""
        lengths = range(min(self._longest - 1, len(text)), 0, -1)
        return next((length for length in lengths if cut(length) in parts), 0)


def _any_of(names: list[str]) -> re.Pattern[str] | None:
    """Match any of the names, the longest where several do."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if names else None
