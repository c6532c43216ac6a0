"""What is served at which threshold: scores of labelled pairs, and thresholds fitted elsewhere."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import beta

from semantic_layer.decision import Judge
from semantic_layer.models.bert_encoder import BertEncoder
from semantic_layer.text.lexicon import english
from semantic_layer.weighing import Found
from tests.bench import pair_sets
from tests.bench.fit_scorer import embed
from tests.bench.pair_sets import LabelledPair
from tests.bench.semantic.authored import read_groups
from tests.bench.semantic.english_edits import swapped_words
from tests.bench.semantic.mixture import langcache_half, paws_half
from tests.semantic_layer.entries import entry_of

SHARES = (0.01, 0.02, 0.05)  # of traps that may be served


@dataclass(frozen=True, slots=True)
class Kinded:
    """A labelled pair and the kind of its difference."""

    pair: LabelledPair
    kind: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A pair, its kind, and the score the judge gives it; 0 when it is vetoed."""

    pair: LabelledPair
    kind: str
    score: float


def interval(hits: int, tries: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval (95%) of a share."""
    if not tries:
        return 0.0, 1.0
    low = float(beta.ppf(0.025, hits, tries - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, tries - hits)) if hits < tries else 1.0
    return low, high


def fitted_sets() -> list[Kinded]:
    """Return authored questions, each with its rewordings and traps, that nothing was fitted on."""
    chosen = [group for group in read_groups() if group.is_measured]
    return [Kinded(pair, kind) for group in chosen for pair, kind in group.asked()]


def crossed_sets(most: int) -> list[Kinded]:
    """Return pairs of the same groups, every rewording also held against every trap."""
    chosen = [group for group in read_groups() if group.is_measured]
    pairs = [Kinded(pair, kind) for group in chosen for pair, kind in group.pairs()]
    return random.Random(3).sample(pairs, min(most, len(pairs)))


def measured_sets(folder: Path, most: int) -> dict[str, list[Kinded]]:
    """Return every set nothing was fitted on, at most ``most`` pairs of each."""
    rng = random.Random(17)
    questions = [p.one for p in pair_sets.quora_held_out(folder) if 5 < len(p.one.split()) < 20]
    swapped = [(text, _swapped(text, rng)) for text in rng.sample(questions, most)]
    plain = {
        "lcqmc": pair_sets.lcqmc(folder),
        "quora_held_out": pair_sets.quora_held_out(folder),
        "redis_langcache": langcache_half(folder, trained=False),
        "pawsx_zh": paws_half(folder, trained=False),
        "swapped_en": [LabelledPair(a, b, same=False) for a, b in swapped if b is not None],
    }
    dev = [
        Kinded(pair, kind)
        for pair, kind in zip(
            pair_sets.question_pairs(folder), pair_sets.question_kinds(folder), strict=True
        )
    ]
    return {
        "question_pairs_dev": dev,
        **{
            name: [Kinded(p, "same" if p.same else "trap") for p in pairs[:most]]
            for name, pairs in plain.items()
        },
    }


def _swapped(text: str, rng: random.Random) -> str | None:
    """Exchange two words that carry meaning: without "you" and "your" it stays a sentence."""
    other = swapped_words(text, rng)
    if other is None:
        return None
    moved = {a.casefold() for a, b in zip(text.split(), other.split(), strict=True) if a != b}
    function = set().union(*english().classes.values())
    return None if {word.strip("?,.!") for word in moved} & function else other


async def scored(pairs: Iterable[Kinded], judge: Judge, encoder: BertEncoder) -> list[Scored]:
    """Judge every pair as if its first text were stored and its second asked."""
    listed = list(pairs)
    vectors = embed([t for k in listed for t in (k.pair.one, k.pair.other)], encoder)
    result = []
    for each in listed:
        pair = each.pair
        found = Found(float(vectors[pair.one] @ vectors[pair.other]), entry_of(pair.one))
        decision = await judge.decide(pair.other, 0.0, [found])
        result.append(Scored(pair, each.kind, decision.judgement.score or 0.0))
    return result


def threshold_at(rows: Sequence[Scored], share: float) -> float:
    """Return the lowest score above which at most this share of the traps lies."""
    traps = sorted((row.score for row in rows if not row.pair.same), reverse=True)
    return traps[int(share * len(traps))] + 1e-9 if traps else 1.0


def served(rows: Iterable[Scored], threshold: float, *, same: bool) -> tuple[int, int]:
    """Return how many pairs with this label reach the threshold, and how many there are."""
    chosen = [row for row in rows if row.pair.same == same]
    return sum(row.score >= threshold for row in chosen), len(chosen)
