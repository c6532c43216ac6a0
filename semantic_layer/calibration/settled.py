"""What the word of rules is worth that find no difference between two texts. Pure.

Knows neither rules nor texts, only in how many places two texts are worded otherwise.
"""

# The scores of texts that differ in no, one, more places; verified ones have lower scores.
SETTLED = (0.9998, 0.9995, 0.999)
UNPROVEN = SETTLED[-1]
# The budgets from which they are served, be there ever so many traps.
# Source: of pairs that rules call the same, LCQMC's development set has 0 wrong of 402 with one
# place at most and 5 of 229 with more; authored questions against all traps 0 of 13 and 5 of 35.
_SERVED_FROM = tuple(zip((0.0, 0.01, 0.02), SETTLED, strict=True))


def settled(num_places: int) -> float:
    """Return the score of texts that rules call the same, by how many places are reworded."""
    return SETTLED[min(num_places, len(SETTLED) - 1)]


def settled_from(budget: float) -> float:
    """Return the score from which rules' word keeps a budget, however many traps there are.

    The less may be wrong, the fewer places may be worded otherwise; 0 serves equal texts only.
    """
    if budget <= 0:
        return 1.0
    return min(score for least, score in _SERVED_FROM if budget >= least)
