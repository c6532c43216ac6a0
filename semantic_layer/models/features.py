"""What the score is computed from: one row of numbers per compared pair. Pure."""

from semantic_layer.comparison.edits import Comparison

NAMES = (
    "similarity",
    "similarity_squared",
    "similarity_whole",
    "only_least",
    "only_most",
    "only_weak",
    "coverage",
    "substituted",
    "names",
    "frame",
    "modal",
    "tense",
    "moved",
    "turned",
    "typo",
    "derived",
    "short",
    "owners",
    "links",
    "nothing_left",
)
_USUAL_SIMILARITY = 0.93
_SPREAD = 0.03
_MOST = 4.0
_SHORT = 4


def features(similarity: float, c: Comparison) -> tuple[float, ...]:
    """Return the numbers named in `NAMES`; all are small and symmetric in the two texts."""
    strong_one = [token for token in c.only_one if not token.weak]
    strong_other = [token for token in c.only_other if not token.weak]
    num_one, num_other = len(strong_one), len(strong_other)
    num_weak = len(c.only_one) + len(c.only_other) - num_one - num_other
    likeness = (similarity - _USUAL_SIMILARITY) / _SPREAD
    is_whole = float(num_one == num_other == 0)
    return (
        likeness,
        likeness * abs(likeness),
        likeness * is_whole,
        min(float(min(num_one, num_other)), _MOST),
        min(float(max(num_one, num_other)), _MOST),
        min(float(num_weak), 2.0),
        c.coverage,
        float(num_one > 0 and num_other > 0),
        min(float(sum(token.name for token in (*strong_one, *strong_other))), 2.0),
        float(c.one.frame != c.other.frame),
        float(c.one.modal != c.other.modal),
        float(c.one.tense != c.other.tense),
        float(c.order == "moved"),
        float(c.order in {"moved_bare", "swapped"}),
        min(float(c.count("typo")), 2.0),
        min(float(c.count("derived")), 2.0),
        float(c.num_matched < _SHORT),
        float(c.one.owners != c.other.owners),
        min(float(c.num_loose_links), 2.0),
        is_whole,
    )
