"""A cross-encoder by name as the verifier: both orders count, and a model that is none fails."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from semantic_layer.errors import VerifierFailed
from semantic_layer.models.cross_encoder import LibraryCrossEncoder
from semantic_layer.models.verifier import load_verifier

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "how", "do", "i", "reset", "my", "password"]


def tiny(folder: Path, *, num_labels: int) -> Path:
    """Write a cross-encoder of a few numbers."""
    vocabulary = {word: at for at, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
        num_labels=num_labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("cross") / "model", num_labels=1)


def test_scores_are_probabilities_and_symmetric_when_loaded_by_folder(folder: Path) -> None:
    """The lesser of both orders counts, so places can be changed."""
    scorer = load_verifier(str(folder), Path("unused"))
    assert isinstance(scorer, LibraryCrossEncoder)
    one, other = scorer.score(
        [("how do i reset", "my password"), ("my password", "how do i reset")]
    )
    assert one == pytest.approx(other)
    assert 0 < one < 1
    assert scorer.score([]) == []
    assert scorer.fingerprint == LibraryCrossEncoder(str(folder)).fingerprint


def test_text_does_not_fit_when_it_fills_more_than_half_the_window(folder: Path) -> None:
    """Both texts are read whole or not at all."""
    scorer = LibraryCrossEncoder(str(folder))
    assert scorer.fits("how do i reset my password")
    assert not scorer.fits("password " * 16)


def test_loading_fails_by_name_when_the_model_gives_two_numbers(tmp_path: Path) -> None:
    """A classifier of several classes is no probability of the same answer."""
    with pytest.raises(VerifierFailed, match="2 numbers"):
        LibraryCrossEncoder(str(tiny(tmp_path / "two", num_labels=2)))


def test_loading_fails_by_name_when_there_is_no_model(tmp_path: Path) -> None:
    """A wrong folder is one clear line."""
    with pytest.raises(VerifierFailed, match="nowhere"):
        LibraryCrossEncoder(str(tmp_path / "nowhere"))
