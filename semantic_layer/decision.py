"""Judge stored entries for a new text: guards, score, threshold. Knows no store."""

from collections.abc import Iterable
from dataclasses import dataclass

from semantic_layer.analysis import analyse
from semantic_layer.edits import compare
from semantic_layer.entry import Entry
from semantic_layer.guards import first_veto
from semantic_layer.histories import Fit
from semantic_layer.likeness import KnowsWord
from semantic_layer.outcome import Candidate, Judgement, Reason, Verdict
from semantic_layer.scorer import Scorer
from semantic_layer.script import normalise

_SAMPLES = ("What is it?", "这是什么？")  # read once ahead, so that word lists are loaded
_LONG_TEXT = 4_000  # characters; beyond, only equal texts are judged


@dataclass(frozen=True, slots=True)
class Found:
    """An entry near the asked text; ``is_young`` is False when the caller wants a newer answer.

    ``fit`` is there when messages stand before either text.
    """

    similarity: float
    entry: Entry
    is_young: bool = True
    fit: Fit | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The entry to serve, if any, and the numbers of it or of the best one refused."""

    entry: Entry | None
    judgement: Judgement


class Judge:
    """Decides which of the found entries may answer a text.

    Args:
        scorer: gives the probability of the same answer.
        knows_word: tells real words from misspelt ones.
    """

    def __init__(self, scorer: Scorer, knows_word: KnowsWord | None = None) -> None:
        self._scorer = scorer
        self._knows_word = knows_word
        for sample in _SAMPLES:
            analyse(sample)

    @property
    def fingerprint(self) -> str:
        """What changes whenever scores would."""
        return self._scorer.fingerprint

    @property
    def least_similarity(self) -> float:
        """The cosine under which no candidate can be served."""
        return self._scorer.least_similarity

    def decide(self, text: str, threshold: float, found: Iterable[Found]) -> Decision:
        """Serve the candidate with the highest score that reaches the threshold."""
        judged = [(self.judge(text, threshold, item), item.entry) for item in found]
        candidates = tuple(candidate for candidate, _ in judged)
        if not judged:
            return Decision(None, Judgement())
        best, entry = max(judged, key=lambda pair: (pair[0].score, pair[0].similarity))
        served = all(reason.verdict != "veto" for reason in best.reasons)
        judgement = Judgement(
            similarity=best.similarity,
            score=best.score,
            reasons=best.reasons,
            candidates=candidates,
        )
        return Decision(entry if served else None, judgement)

    def judge(self, text: str, threshold: float, found: Found) -> Candidate:
        """Return the candidate's score and why it may or may not be served."""
        similarity, entry, fit = found.similarity, found.entry, found.fit
        if fit is not None and fit.reason.verdict == "veto":
            return Candidate(entry.entry_id, similarity, 0.0, (fit.reason,))
        asked, stored = (text, entry.text or "") if fit is None else fit.texts
        score, reasons = self._score(asked, stored, similarity)
        if fit is not None:
            score, reasons = min(score, fit.score), [fit.reason, *reasons]
        if not found.is_young:
            reasons.append(Reason("age", "veto", "older than the request allows"))
            score = 0.0
        if all(reason.verdict != "veto" for reason in reasons):
            verdict: Verdict = "pass" if score >= threshold else "veto"
            reasons.append(Reason("threshold", verdict, f"{score:.4f} / {threshold:.4f}"))
        return Candidate(entry.entry_id, similarity, score, tuple(reasons), entry.text or "")

    def _score(self, text: str, stored: str, similarity: float) -> tuple[float, list[Reason]]:
        if normalise(text) == normalise(stored):
            return 1.0, [Reason("equal", "pass", "the same text")]
        if similarity < self._scorer.least_similarity:
            return 0.0, [Reason("similarity", "veto", f"{similarity:.4f} is too low")]
        if max(len(text), len(stored)) > _LONG_TEXT:
            return 0.0, [Reason("length", "veto", "too long to be compared word by word")]
        comparison = compare(analyse(text), analyse(stored), self._knows_word)
        veto = first_veto(comparison)
        if veto is not None:
            return 0.0, [veto]
        return self._scorer.score(similarity, comparison), [Reason("guards", "pass")]
