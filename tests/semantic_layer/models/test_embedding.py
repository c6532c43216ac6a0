"""Embedders: the thread, and both real encoders on the bundled model."""

import asyncio
import shutil
from pathlib import Path

import numpy as np
import pytest

from semantic_layer.errors import EmbedderFailed, TextTooLong
from semantic_layer.models.bert_encoder import BertEncoder, fingerprint_of, is_plain_bert
from semantic_layer.models.embedding import ThreadedEmbedder, is_beyond, load_encoder, most_chars
from semantic_layer.models.library_encoder import LibraryEncoder
from tests.fakes.embedder import FakeEncoder

TEXTS = ["How do I boil an egg?", "怎么煮鸡蛋？", "word " * 120, "x", "🌙 night"]


@pytest.fixture(scope="module")
def encoder(bundled_embedder: Path) -> BertEncoder:
    found = load_encoder(bundled_embedder)
    assert isinstance(found, BertEncoder)
    return found


async def test_rows_belong_to_their_callers_when_calls_share_a_batch() -> None:
    """Concurrent calls are batched, and each gets its own rows in its own order."""
    encoder = FakeEncoder()
    embedder = ThreadedEmbedder(encoder, max_batch=8)
    texts = [["a" * i, "b" * (i + 1)] for i in range(20)]
    rows = await asyncio.gather(*(embedder.embed(pair) for pair in texts))
    await embedder.close()
    for i, row in enumerate(rows):
        assert row.argmax(axis=1).tolist() == [i % 4, (i + 1) % 4]
    assert sum(encoder.batches) == 40
    assert max(encoder.batches) <= 8


async def test_text_is_refused_alone_when_it_exceeds_the_window() -> None:
    """A text past the window is never cut, and does not spoil the batch it came in."""
    embedder = ThreadedEmbedder(FakeEncoder())
    long, short = await asyncio.gather(
        embedder.embed(["a b c d e f"]), embedder.embed(["a b"]), return_exceptions=True
    )
    await embedder.close()
    assert isinstance(long, TextTooLong)
    assert isinstance(short, np.ndarray)


async def test_text_is_refused_unread_when_no_window_could_hold_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Megabytes are not taken apart to find that they are too long: others wait for the thread."""
    encoder = FakeEncoder()
    read: list[str] = []
    count = encoder.count_tokens
    monkeypatch.setattr(encoder, "count_tokens", lambda text: read.append(text) or count(text))
    embedder = ThreadedEmbedder(encoder)
    longest = "x" * most_chars(encoder.window_tokens)
    with pytest.raises(TextTooLong, match=f"{len(longest) + 1} characters"):
        await embedder.embed([longest + "x"])
    assert read == []
    assert (await embedder.embed([longest])).shape[0] == 1
    await embedder.close()


async def test_calls_fail_by_name_when_the_model_breaks_or_is_closed() -> None:
    """A broken model fails the calls, not the thread; a closed one refuses."""
    encoder = FakeEncoder()
    embedder = ThreadedEmbedder(encoder)
    encoder.broken = True
    with pytest.raises(EmbedderFailed, match="no memory"):
        await embedder.embed(["a"])
    encoder.broken = False
    assert (await embedder.embed(["a"])).shape == (1, 4)
    await embedder.close()
    await embedder.close()
    with pytest.raises(EmbedderFailed):
        await embedder.embed(["a"])


async def test_thread_goes_on_when_a_caller_gives_up() -> None:
    """A cancelled call leaves nothing behind."""
    embedder = ThreadedEmbedder(FakeEncoder())
    task = asyncio.create_task(embedder.embed(["a"]))
    await asyncio.sleep(0)
    task.cancel()
    assert (await embedder.embed(["a"])).shape == (1, 4)
    await embedder.close()


def test_fast_rows_equal_the_library_when_the_folder_is_plain_bert(
    encoder: BertEncoder, bundled_embedder: Path
) -> None:
    """Both encoders agree within 5e-3 on one folder, padded batches and long texts included."""
    library = LibraryEncoder(str(bundled_embedder))
    assert np.abs(encoder.encode(TEXTS) - library.encode(TEXTS)).max() < 5e-3
    assert [encoder.count_tokens(t) for t in TEXTS] == [library.count_tokens(t) for t in TEXTS]
    assert encoder.window_tokens == library.window_tokens
    assert encoder.fingerprint == library.fingerprint
    assert [encoder.knows_word(w) for w in ("yellow", "yelow")] == [True, False]
    assert [library.knows_word(w) for w in ("yellow", "yelow")] == [True, False]


def test_rows_have_unit_length_when_embedded(encoder: BertEncoder) -> None:
    """Rows are float32, of unit length, one per text."""
    rows = encoder.encode(TEXTS)
    assert rows.dtype == np.float32
    assert rows.shape == (len(TEXTS), encoder.dim)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_fingerprint_changes_when_the_prompt_changes(
    bundled_embedder: Path, tmp_path: Path
) -> None:
    """Whatever shapes the vectors shapes the fingerprint."""
    copy = tmp_path / "copy"
    shutil.copytree(bundled_embedder, copy, copy_function=link)
    assert fingerprint_of(copy) == fingerprint_of(bundled_embedder)
    settings = copy / "config_sentence_transformers.json"
    text = settings.read_text().replace("query: ", "question: ")
    settings.unlink()
    settings.write_text(text)
    assert fingerprint_of(copy) != fingerprint_of(bundled_embedder)


def link(source: str, target: str) -> None:
    Path(target).symlink_to(Path(source).resolve())


@pytest.mark.parametrize("name", ["modules.json", "tokenizer.json", "model.safetensors"])
def test_loading_names_the_folder_when_it_is_broken(
    bundled_embedder: Path, tmp_path: Path, name: str
) -> None:
    """A broken file raises one clear line, on the fast path or the library's."""
    copy = tmp_path / "copy"
    shutil.copytree(bundled_embedder, copy, copy_function=link)
    (copy / name).unlink()
    (copy / name).write_bytes(b"not what it was")
    with pytest.raises(EmbedderFailed, match="does not load") as caught:
        load_encoder(copy)
    assert "\n" not in str(caught.value)
    assert str(copy) in str(caught.value)


def test_loading_names_the_folder_when_it_is_missing(tmp_path: Path) -> None:
    """A missing folder raises one clear line and is never looked up on a hub."""
    missing = tmp_path / "none"
    for name in (missing, str(missing)):
        with pytest.raises(EmbedderFailed, match="no such folder"):
            load_encoder(name)
    assert not is_plain_bert(missing)


def test_white_space_makes_no_text_too_long() -> None:
    """Tokenizers make one gap of it: a wide table may fit a window for all its blanks."""
    most = most_chars(512)
    assert not is_beyond("one" + " " * 2 * most + "two", 512)
    assert is_beyond("word " * most, 512)
    assert not is_beyond("x" * most, 512)
