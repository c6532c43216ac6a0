"""Whether two answers say the same, by what is written and, where that is silent, by likeness."""

from semantic_layer.comparison.answer_equality import (
    SURELY_SAME,
    UNDECIDED,
    Equality,
    by_score,
    compare_answers,
)
from semantic_layer.decision import Judge
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable, TextTooLong
from semantic_layer.guarded import GuardedParts
from semantic_layer.models.scorer import Scorer
from semantic_layer.text.likeness import KnowsWord
from semantic_layer.weighing import Found


class AnswerComparison:
    """Compares answers; no verifier is asked, because it was trained on questions."""

    def __init__(self, parts: GuardedParts, scorer: Scorer, knows_word: KnowsWord | None) -> None:
        self._parts = parts
        self._judge = Judge(scorer, knows_word)
        self._knows_word = knows_word

    async def compare(self, one: str, other: str) -> Equality:
        """Return what can be told of two answers; undecided where a part is down."""
        found = compare_answers(one, other, self._knows_word)
        if found is not UNDECIDED:
            return found
        try:
            first, second = await self._parts.embed(one), await self._parts.embed(other)
        except (StoreUnavailable, TextTooLong):
            return UNDECIDED
        near = [Found(float(first @ second), _said(other))]
        decision = await self._judge.decide(one, SURELY_SAME, near)
        return by_score(decision.judgement.score or 0.0)


def _said(text: str) -> Entry:
    """Return an entry of nothing but a text."""
    return Entry("", "", "", "", "", b"", 0.0, 0.0, text=text)
