"""Whether people complained of too many of the hits they were served. Pure.

Nobody samples complaints, so each is held against all hits since the one before, as if those that
nobody complained of had been right; what is proven so is proven the more of what was wrong. `drift`
asks whether it is so of late, and so often that it must be very sure; this asks it once, of all
that was served, and is as sure with a fifteenth of the capital: a tenth to a quarter fewer wrong
answers are served until an intent that was bad from the start is noticed.

Source: Waudby-Smith and Ramdas (2024) with Ville's inequality (1939), as `betting`: the capital of
one who bets on "too many" passes 20 with probability 1/20 at most where they are not, ever.
"""

import math
from collections.abc import Sequence

import numpy as np

from semantic_layer.calibration.betting import BETS_ABOVE
from semantic_layer.calibration.labels import Label


def too_many(
    told: Sequence[Label], threshold: float, budget: float, *, least: int, alpha: float = 0.05
) -> bool:
    """Say whether what people said, oldest first, ever proved that too much is wrong.

    Only of what is served at the ``threshold``, and of ``least`` hits or more; an entry is wrong
    once, however many say so. Once proven it stays so: silence after the threshold was raised tells
    nothing of what is not served any more.
    """
    if not told or budget <= 0:
        return False
    is_wrong, seen = np.zeros(len(told), dtype=np.bool_), set[tuple[str, ...]]()
    is_right = np.zeros(len(told), dtype=np.bool_)
    for i, label in enumerate(told):
        entry = (label.tenant, label.entry_id or label.stored_text or label.label_id)
        if label.score < threshold or (not label.right and entry in seen):
            continue
        is_wrong[i], is_right[i] = not label.right, label.right
        if not label.right:
            seen.add(entry)
    wrong = np.cumsum(is_wrong)
    right = np.cumsum(is_right) + np.cumsum([label.silent for label in told])
    gains = np.log1p(BETS_ABOVE * (1 - budget) / budget), np.log1p(-BETS_ABOVE)
    logs = np.outer(wrong, gains[0]) + np.outer(right, gains[1])
    capital = np.logaddexp.reduce(logs, axis=1) - math.log(len(BETS_ABOVE))
    return bool((capital[wrong + right >= least] >= -math.log(alpha)).any())
