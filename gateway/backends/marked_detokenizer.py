"""A detokenizer that shows some special tokens by their names, which others leave out."""

from collections.abc import Mapping

from gateway.backends.detokenizer import Detokenizer, Piece


class MarkedDetokenizer:
    """Decodes one sequence with ``inner``, and the ids of ``names`` to their names."""

    def __init__(self, inner: Detokenizer, names: Mapping[int, str]) -> None:
        self._inner = inner
        self._names = names

    def push(self, token_id: int) -> Piece:
        """Take the next token."""
        if (name := self._names.get(token_id)) is not None:
            return Piece(self._inner.flush() + name, name.encode())
        return self._inner.push(token_id)

    def flush(self) -> str:
        """End the sequence."""
        return self._inner.flush()
