"""The score: a probability that falls with what differs, and knows its embedder."""

from pathlib import Path

import numpy as np
import pytest

from semantic_layer.comparison.edits import Comparison, compare
from semantic_layer.decision import Judge
from semantic_layer.entry import Entry
from semantic_layer.models.embedding import ThreadedEmbedder, Vectors, load_encoder
from semantic_layer.models.features import NAMES, features
from semantic_layer.models.scorer import BUNDLED, Scorer
from semantic_layer.resources import load_json
from semantic_layer.text.analysis import analyse
from semantic_layer.weighing import Found
from tests.fakes.embedder import FakeEmbedder
from tests.semantic_layer.entries import entry_of

BUNDLED_SCORER = Scorer.of(load_json(BUNDLED))
SAME = ("How do I turn on updates?", "How can I switch on updates?")
ALIKE = ("How do I apply for a refund?", "How do I request my refund?")


def pair(one: str, other: str) -> Comparison:
    return compare(analyse(one), analyse(other))


def entry(text: str) -> Entry:
    return entry_of(text, text)


def test_score_rises_when_similarity_rises() -> None:
    """Nothing else equal, a higher cosine never lowers the score."""
    scores = [BUNDLED_SCORER.score(s, pair(*ALIKE)) for s in np.linspace(0.85, 1.0, 16)]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1] <= BUNDLED_SCORER.ceiling


def test_score_is_a_certain_one_when_nothing_differs() -> None:
    """A near-repeat scores at least .99, whatever the embedder makes of it."""
    for scorer in (BUNDLED_SCORER, Scorer.conservative()):
        assert scorer.score(0.9, pair(*SAME)) >= 0.99


def test_score_is_symmetric_when_texts_change_places() -> None:
    """Which text was stored first makes no difference."""
    for similarity in (0.9, 0.97):
        assert BUNDLED_SCORER.score(similarity, pair(*ALIKE)) == pytest.approx(
            BUNDLED_SCORER.score(similarity, pair(*ALIKE[::-1]))
        )


def test_features_are_those_the_data_file_weighs() -> None:
    """The data file and the code speak of the same features."""
    data = load_json(BUNDLED)
    assert set(data["weights"]) == set(NAMES)
    assert len(features(0.9, pair(*ALIKE))) == len(NAMES)
    assert data["data_statement"]


async def test_fitted_scorer_is_chosen_when_the_embedder_gives_its_cosines(
    bundled_embedder: Path,
) -> None:
    """The bundled embedder is known by what it does, not by its name."""
    embedder = ThreadedEmbedder(load_encoder(bundled_embedder))
    assert (await Scorer.matching(embedder)).weights == load_json(BUNDLED)["weights"]
    await embedder.close()


async def test_conservative_scorer_is_chosen_when_cosines_are_unknown() -> None:
    """With another embedder only texts without a difference are served."""
    scorer = await Scorer.matching(FakeEmbedder())
    assert scorer.score(0.99, pair(*ALIKE)) < 0.9
    assert scorer.score(0.90, pair(*SAME)) >= 0.99


async def test_best_score_wins_when_a_nearer_text_scores_less() -> None:
    """The candidate to serve is the surest, not the nearest."""
    found = [Found(0.999, entry("How do I turn off updates?")), Found(0.9, entry(SAME[1]))]
    decision = await Judge(BUNDLED_SCORER).decide(SAME[0], 0.95, found)
    assert decision.entry is not None
    assert decision.entry.text == SAME[1]
    assert [c.score for c in decision.judgement.candidates] == [0, decision.judgement.score]


async def test_hits_never_grow_when_the_threshold_grows() -> None:
    """Raising a threshold only ever turns hits into misses; 1 admits equal texts only."""
    judge = Judge(BUNDLED_SCORER)
    texts = [SAME[0], SAME[1], *ALIKE]
    for text in texts:
        served = []
        for t in (0.5, 0.9, 0.95, 0.99, 1.0):
            each = [await judge.decide(text, t, [Found(0.97, entry(o))]) for o in texts]
            served.append(sum(decision.entry is not None for decision in each))
        assert served == sorted(served, reverse=True)
        assert served[-1] == 1


async def test_long_texts_are_refused_when_not_equal() -> None:
    """Texts too long to be compared word by word hit only when equal."""
    judge, long = Judge(BUNDLED_SCORER), "All rain falls. " * 400
    assert (await judge.decide(long, 0.9, [Found(1.0, entry(long))])).entry is not None
    assert (await judge.decide(long + "x", 0.9, [Found(1.0, entry(long))])).entry is None


class _Constant(FakeEmbedder):
    async def embed(self, texts: list[str]) -> Vectors:  # type: ignore[override]
        return np.ones((len(texts), self.dim), np.float32) / 8


async def test_conservative_scorer_is_chosen_when_an_embedder_says_all_are_equal() -> None:
    """An embedder that cannot tell texts apart is not mistaken for the bundled one."""
    assert not (await Scorer.matching(_Constant())).weights
