"""The incremental detokenizer against decoding all ids at once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models

from gateway.backends.detokenizer import (
    ByteDetokenizer,
    Detokenizer,
    WindowDetokenizer,
    read_byte_table,
)
from gateway.backends.tokenizer import Tokenizer

TRICKY = [
    "🌙👩\u200d🚀你好",
    "晚安🌙 café Ω 你好👩\u200d🚀",
    "e\u0301u\u0308 a\u030a\u0332",
    "👨\u200d👩\u200d👧\u200d👦🏳️\u200d🌈🇨🇭",
    "  leading and trailing  \n\t",
    "한국어 ไทย עברית العربية",
    "\ufffd is a character too",
    "",
]


@pytest.fixture(scope="module")
def smollm(bundled_chat_model: Path) -> Tokenizer:
    return Tokenizer(bundled_chat_model)


def pieces(detokenizer: Detokenizer, ids: Sequence[int]) -> list[str]:
    return [*(detokenizer.push(token_id).text for token_id in ids), detokenizer.flush()]


@pytest.mark.parametrize("text", TRICKY)
def test_pieces_join_to_the_text_when_characters_span_tokens(smollm: Tokenizer, text: str) -> None:
    """No character is cut, and U+FFFD appears only where the text has it."""
    ids = smollm.encode(text)
    got = pieces(smollm.detokenizer(), ids)
    assert "".join(got) == text == smollm.decode(ids)
    assert any("\ufffd" in piece for piece in got) == ("\ufffd" in text)


def test_a_text_is_cut_everywhere_as_its_one_shot_decode_when_it_ends_early(
    smollm: Tokenizer,
) -> None:
    """An answer that ends inside a character ends as decoding its ids at once does."""
    ids = smollm.encode("".join(TRICKY))
    for end in range(len(ids) + 1):
        assert "".join(pieces(smollm.detokenizer(), ids[:end])) == smollm.decode(ids[:end])


@given(ids=st.lists(st.integers(0, 49_151) | st.integers(0, 300), max_size=40))
def test_pieces_join_to_the_one_shot_decode_when_ids_are_random(
    smollm: Tokenizer, ids: list[int]
) -> None:
    """Byte garbage and special tokens decode as the tokenizer decodes them, always."""
    assert "".join(pieces(smollm.detokenizer(), ids)) == smollm.decode(ids)


@given(text=st.text(max_size=40))
def test_bytes_of_tokens_join_to_the_text_when_text_is_random(smollm: Tokenizer, text: str) -> None:
    """What logprobs call bytes is the text's UTF-8."""
    detokenizer = smollm.detokenizer()
    data = b"".join(detokenizer.push(token_id).data for token_id in smollm.encode(text))
    assert data.decode(errors="replace") == smollm.decode(smollm.encode(text))


WORDS = ["▁", "▁the", "▁▁", "cat", "s", "é", "你", "▁new▁york", "<think>", "<s>"]
DECODERS = {
    "llama": decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    ),
    "gemma": decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    ),
    "metaspace": decoders.Metaspace(),
    "metaspace never": decoders.Metaspace(prepend_scheme="never"),
}
NUM_IDS = len(WORDS) + 256


@pytest.fixture(scope="module", params=DECODERS)
def sentencepiece(request: pytest.FixtureRequest) -> Iterator[tokenizers.Tokenizer]:
    """A tokenizer of the SentencePiece kind: words with ▁, then the 256 byte tokens."""
    tokens = [*WORDS, *(f"<0x{byte:02X}>" for byte in range(256))]
    tokenizer = tokenizers.Tokenizer(
        models.BPE({token: at for at, token in enumerate(tokens)}, [], byte_fallback=True)
    )
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.decoder = DECODERS[request.param]
    return tokenizer


def _spell(text: str) -> list[int]:
    return [len(WORDS) + byte for byte in text.encode()]


@given(
    parts=st.lists(
        st.integers(0, len(WORDS) - 1).map(lambda at: [at])
        | st.sampled_from("🌙你好éx ").map(_spell),
        max_size=12,
    )
)
def test_pieces_join_to_the_one_shot_decode_when_bytes_are_spelled_out(
    sentencepiece: tokenizers.Tokenizer, parts: list[list[int]]
) -> None:
    """Leading-space rules and byte-fallback tokens are followed."""
    ids = [token_id for part in parts for token_id in part]
    table = read_byte_table(sentencepiece)
    assert table is not None
    assert "".join(pieces(ByteDetokenizer(table), ids)) == sentencepiece.decode(ids)


def test_only_the_broken_part_is_replaced_when_fallback_bytes_spell_no_text() -> None:
    """A cut character does not take the whole characters before it with it."""
    tokens = {f"<0x{byte:02X}>": byte for byte in range(256)}
    tokenizer = tokenizers.Tokenizer(models.BPE(tokens, [], byte_fallback=True))
    tokenizer.decoder = DECODERS["gemma"]
    table = read_byte_table(tokenizer)
    assert table is not None
    ids = list("你好".encode())[:-1]
    assert "".join(pieces(ByteDetokenizer(table), ids)) == "你\ufffd"
    assert tokenizer.decode(ids) == "\ufffd" * 5


@pytest.mark.parametrize("text", TRICKY)
def test_window_joins_to_the_text_when_only_decoding_is_known(smollm: Tokenizer, text: str) -> None:
    """A tokenizer whose decoder we cannot read streams whole characters as well."""
    detokenizer = WindowDetokenizer(smollm.decode)
    assert "".join(pieces(detokenizer, smollm.encode(text))) == text


def test_decoder_is_not_read_when_its_kind_is_unknown() -> None:
    """An unknown decoder is left to the window."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    assert read_byte_table(tokenizer) is None
    tokenizer.decoder = decoders.WordPiece()
    assert read_byte_table(tokenizer) is None
