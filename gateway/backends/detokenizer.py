"""Token ids to text, a token at a time, without ever cutting a character.

`ByteDetokenizer` knows each token's bytes and serves every tokenizer whose decoder we can read
(byte-level BPE, SentencePiece with or without byte fallback). `WindowDetokenizer` needs only a
decode function and serves the rest. Both join to what decoding all ids at once gives, with one
choice of our own: of byte-fallback tokens that spell no UTF-8, only the broken part becomes U+FFFD,
not the whole run.
"""

import codecs
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import tokenizers

REPLACEMENT = "\ufffd"
MAX_WINDOW = 16  # ids that may spell an unfinished character before they are given up as broken
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")

Leading = Literal["keep", "strip one space", "drop spaces of the first token"]


class Piece(NamedTuple):
    """What one token adds: whole characters, and the bytes it stands for."""

    text: str
    data: bytes


class Detokenizer(Protocol):
    """Decodes one sequence."""

    def push(self, token_id: int) -> Piece:
        """Take the next token."""
        ...

    def flush(self) -> str:
        """End the sequence; an unfinished character becomes U+FFFD."""
        ...


@dataclass(frozen=True, slots=True)
class ByteTable:
    """Bytes of each token id (special tokens have none) and what happens to leading spaces."""

    token_bytes: list[bytes]
    leading: Leading = "keep"


class ByteDetokenizer:
    """Joins the tokens' bytes and decodes them as UTF-8 as they become whole."""

    def __init__(self, table: ByteTable) -> None:
        self._table = table
        self._leading = table.leading
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> Piece:
        """Take the next token; an id out of range has no bytes."""
        table = self._table.token_bytes
        data = table[token_id] if 0 <= token_id < len(table) else b""
        if data and self._leading != "keep":
            data = self._without_leading(data)
        return Piece(self._utf8.decode(data), data)

    def flush(self) -> str:
        """End the sequence; an unfinished character becomes U+FFFD."""
        return self._utf8.decode(b"", final=True)

    def _without_leading(self, data: bytes) -> bytes:
        leading, self._leading = self._leading, "keep"
        if leading == "strip one space":
            return data.removeprefix(b" ")
        return data.replace(b" ", b"")


class WindowDetokenizer:
    """Decodes a window of ids that is moved on at every whole character.

    Source: the two-offset scheme of Text Generation Inference and vLLM.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._num_read = 0  # ids of the window whose text has been given
        self._read = ""

    def push(self, token_id: int) -> Piece:
        """Take the next token."""
        self._window.append(token_id)
        text = self._decode(self._window)
        num_open = len(self._window) - self._num_read
        if text.endswith(REPLACEMENT) and num_open < MAX_WINDOW:
            return Piece("", b"")
        new = text[len(self._read) :]
        self._window = self._window[self._num_read :]
        self._num_read = len(self._window)
        self._read = self._decode(self._window)
        return Piece(new, new.encode())

    def flush(self) -> str:
        """End the sequence; an unfinished character becomes U+FFFD."""
        return self._decode(self._window)[len(self._read) :]


def read_byte_table(tokenizer: tokenizers.Tokenizer) -> ByteTable | None:
    """Return the bytes of every token, or None if the decoder is of a kind we cannot read."""
    if tokenizer.decoder is None:
        return None
    steps, leading = _read_steps(json.loads(tokenizer.decoder.__getstate__()))
    if steps is None:
        return None
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    special = {
        token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special
    }
    table = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for token, token_id in vocabulary.items():
        if token not in special:
            table[token_id] = _apply(steps, token)
    return ByteTable(table, leading)


def _apply(steps: Sequence[Callable[[str], str | bytes]], token: str) -> bytes:
    value: str | bytes = token
    for step in steps:
        if isinstance(value, bytes):
            break
        value = step(value)
    return value if isinstance(value, bytes) else value.encode(errors="replace")


def _read_steps(
    decoder: dict[str, Any],
) -> tuple[list[Callable[[str], str | bytes]] | None, Leading]:
    """Turn a decoder's description into steps on one token; None if a step is unknown.

    Source: the ``decoder`` section of tokenizer.json, Hugging Face tokenizers 0.22.
    """
    steps: list[Callable[[str], str | bytes]] = []
    leading: Leading = "keep"
    fused = False
    for part in decoder["decoders"] if decoder["type"] == "Sequence" else [decoder]:
        match part:
            case {"type": "ByteLevel"}:
                steps.append(_byte_level(_BYTE_OF_CHAR))
            case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)}:
                steps.append(_replace(old, new))
            case {"type": "ByteFallback"}:
                steps.append(_byte_fallback)
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip", "content": " ", "start": 1, "stop": 0} if fused:
                leading = "strip one space"
            case {"type": "Metaspace", "replacement": str(old), "prepend_scheme": str(scheme)}:
                steps.append(_replace(old, " "))
                leading = "keep" if scheme == "never" else "drop spaces of the first token"
            case _:
                return None, "keep"
    return steps, leading


def _replace(old: str, new: str) -> Callable[[str], str | bytes]:
    return lambda token: token.replace(old, new)


def _byte_fallback(token: str) -> str | bytes:
    byte = _BYTE_TOKEN.fullmatch(token)
    return token if byte is None else bytes([int(byte[1], 16)])


def _byte_level(byte_of_char: dict[str, int]) -> Callable[[str], str | bytes]:
    def to_bytes(token: str) -> str | bytes:
        try:
            return bytes([byte_of_char[char] for char in token])
        except KeyError:
            return token

    return to_bytes


def _printable_bytes() -> dict[str, int]:
    """Map the characters that stand for bytes in byte-level vocabularies back to the bytes.

    Source: ``bytes_to_unicode`` of the GPT-2 encoder.
    """
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    table = {chr(byte): byte for byte in shown}
    table.update({chr(256 + place): byte for place, byte in enumerate(hidden)})
    return table


_BYTE_OF_CHAR = _printable_bytes()
