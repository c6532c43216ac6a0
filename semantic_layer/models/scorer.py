"""The probability that a stored answer is right for another text.

A logistic model over `features`, with coefficients fitted offline for one embedder's cosines. It
knows its embedder by the cosines of a few probe texts, not by name or file.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from semantic_layer.calibration.settled import UNPROVEN, settled
from semantic_layer.comparison.case_guards import is_linked_alike
from semantic_layer.comparison.chinese_order import denies_otherwise, is_fronted
from semantic_layer.comparison.compounds import is_compound_turned
from semantic_layer.comparison.edits import Comparison
from semantic_layer.comparison.wording import num_rewordings
from semantic_layer.comparison.writing import is_signed_alike
from semantic_layer.models.embedding import Embedder
from semantic_layer.models.features import NAMES, features
from semantic_layer.resources import load_json
from semantic_layer.text.formulas import formulas

BUNDLED = "scorer_e5.json"
_PROBE_TOLERANCE = 0.01
_EQUAL = 0.995
_MOST_TURNED = 16  # content tokens; in longer statements a moved word changes roles
_POINTING = re.compile(r"\b(?:this|these|those)\b|这|那(?!里|么|儿|边)|下面|以下|上面|以上")


@dataclass(frozen=True, slots=True)
class Scorer:
    """Scores a comparison.

    Under the cosine ``least_similarity`` nothing is worth a look; with a verifier the nearest that
    rules leave open is from ``least_nearest`` on, others from ``least_verified`` on. Source: of 389
    rewordings that the bundled one serves, of four sets, 1 lies under .89 and 9 under .92.

    ``weights`` maps each of `features.NAMES` to its coefficient; ``near`` holds (cosine, score)
    knots for texts that nearly say the same. Without weights only texts that say the same in every
    word score high.
    """

    weights: Mapping[str, float]
    bias: float = 0.0
    near: tuple[tuple[float, float], ...] = ()
    least_similarity: float = 0.0
    least_nearest: float = 0.0
    least_verified: float = 0.0
    ceiling: float = 0.99

    @classmethod
    def conservative(cls) -> "Scorer":
        """Return the scorer for embedders whose cosines nothing is known of."""
        return cls(weights={})

    @classmethod
    async def matching(cls, embedder: Embedder, name: str = BUNDLED) -> "Scorer":
        """Return the fitted scorer when the embedder gives its cosines, else the conservative one.

        Raises:
            EmbedderFailed: the embedder broke.
        """
        data: dict[str, Any] = load_json(name)
        texts = [text for probe in data["probes"] for text in probe["texts"]]
        rows = await embedder.embed(texts)
        got = [float(rows[i] @ rows[i + 1]) for i in range(0, len(texts), 2)]
        wanted = [float(probe["cosine"]) for probe in data["probes"]]
        if any(abs(a - b) > _PROBE_TOLERANCE for a, b in zip(got, wanted, strict=True)):
            return cls.conservative()
        return cls.of(data)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Scorer":
        """Return the scorer that a data file describes."""
        assert set(data["weights"]) == set(NAMES), "the data file is of other features"
        return cls(
            weights=data["weights"],
            bias=data["bias"],
            near=tuple((similarity, score) for similarity, score in data["near"]),
            least_similarity=data["least_similarity"],
            least_nearest=data["least_nearest"],
            least_verified=data["least_verified"],
            ceiling=data["ceiling"],
        )

    @property
    def fingerprint(self) -> str:
        """What changes whenever scores would."""
        said = (sorted(self.weights.items()), self.bias, self.near, self.ceiling)
        return "words:" + blake2b(repr(said).encode(), digest_size=6).hexdigest()

    def score(self, similarity: float, comparison: Comparison) -> float:
        """Return a probability, 0..1; guards have been silent."""
        if says_the_same(comparison):
            return _in_place(comparison) if is_in_place(comparison) else _EQUAL
        if not self.weights:
            return 0.0
        score = self._logistic(features(similarity, comparison))
        if says_nearly_the_same(comparison):
            score = max(score, self._near(similarity))
        return min(score, self.ceiling)

    def _logistic(self, row: Sequence[float]) -> float:
        z = self.bias + sum(self.weights[name] * x for name, x in zip(NAMES, row, strict=True))
        return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, z))))

    def _near(self, similarity: float) -> float:
        """Read the curve of texts that nearly say the same, straight between its knots."""
        score = 0.0
        for (s0, p0), (s1, p1) in pairwise(self.near):
            if similarity >= s0:
                score = p0 + (p1 - p0) * min(1.0, (similarity - s0) / (s1 - s0))
        return score


def says_the_same(c: Comparison) -> bool:
    """Say whether nothing that carries meaning is left over on either side."""
    return (
        says_nearly_the_same(c)
        and not c.only_one
        and not c.only_other
        and c.count("derived") == c.count("typo") == 0
        and c.one.owners == c.other.owners
        and _same_persons(c)
        and _pointers(c.one.text) == _pointers(c.other.text)
        and (is_in_place(c) or (c.order == "moved" and not formulas(c.one.text)))
        and not denies_otherwise(c)
    )


def _in_place(c: Comparison) -> float:
    """Return what rules' word is worth: the more places are worded otherwise, the less."""
    return settled(num_rewordings(c)) if c.order == "same" else UNPROVEN


def is_in_place(c: Comparison) -> bool:
    """Say whether what both say comes in the same order, or in one that says the same."""
    return c.order == "same" or is_fronted(c) or c.is_mutual or is_compound_turned(c)


def says_nearly_the_same(c: Comparison) -> bool:
    """Say whether at most words that add little are left over, in whatever order."""
    return (
        all(token.weak for token in (*c.only_one, *c.only_other))
        and c.num_matched > 0
        and not (c.only_one and c.only_other)
        and not c.is_renamed
        and c.count("sense") == 0
        and c.num_loose_links == 0
        and not (c.order == "moved_bare" and (c.num_matched > _MOST_TURNED or _tells_whose(c)))
        and c.one.frame == c.other.frame
        and c.one.modal == c.other.modal
        and c.one.tense == c.other.tense
        and is_signed_alike(c)
        and is_linked_alike(c)
    )


def _pointers(text: str) -> tuple[bool, bool, bool]:
    """Say whether something at hand is meant, 什么 is asked twice, a blank is to be filled."""
    return bool(_POINTING.search(text.casefold())), text.count("什么") > 1, "地什么" in text


def _same_persons(c: Comparison) -> bool:
    """Say whether both speak of the same people; "how do I" and "how do you" do."""
    one, other = c.one.persons, c.other.persons
    return c.one.frame == "how" or not (one and other) or not one.isdisjoint(other)


def _tells_whose(c: Comparison) -> bool:
    """Say whether a yes-no question names whose things act ("my insurance", "my dog's")."""
    return c.one.frame == "yesno" and bool(c.one.owners)
