"""Judge stored entries for a new text: guards, score, threshold. Knows no store and no model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from semantic_layer.analysis import analyse
from semantic_layer.context_score import ContextScore
from semantic_layer.edits import Comparison, compare
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.guards import first_veto
from semantic_layer.histories import Fit
from semantic_layer.likeness import KnowsWord
from semantic_layer.outcome import Candidate, Judgement, Reason, Verdict
from semantic_layer.scorer import Scorer, says_nearly_the_same, says_the_same
from semantic_layer.script import normalise
from semantic_layer.verifier import Pair

_SAMPLES = ("What is it?", "这是什么？")  # read once ahead, so that word lists are loaded
_LONG_TEXT = 4_000  # characters; beyond, only equal texts are judged
_MOST_VERIFIED = 5
_FIRST_VERIFIED = 1  # the nearest is asked of alone: it is the one served most of the time


class Verify(Protocol):
    """A verifier behind its breaker."""

    fingerprint: str

    def fits(self, text: str) -> bool:
        """Say whether a text is short enough to be read whole."""
        ...

    async def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """Return the probability of the same answer per pair.

        Raises:
            StoreUnavailable: it is slow, broken, or its breaker is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """An entry near the asked text; ``is_young`` is False when the caller wants a newer answer.

    ``fit`` is there when messages stand before either text, ``threshold`` when the entry has one of
    its own.
    """

    similarity: float
    entry: Entry
    is_young: bool = True
    fit: Fit | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The entry to serve, if any, and the numbers of it or of the best one refused."""

    entry: Entry | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class _Open:
    """What rules leave open: the (asked, stored) texts to be scored, the least counts.

    ``comparison`` is that of the last messages when they are among them; else rules gave them
    ``settled``.
    """

    pairs: tuple[Pair, ...]
    comparison: Comparison | None = None
    settled: float = 1.0


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What rules say of a candidate; ``open`` is there while a score has to be found."""

    found: Found
    score: float
    reasons: tuple[Reason, ...]
    open: _Open | None = None


class Judge:
    """Decides which of the found entries may answer a text.

    Args:
        scorer: gives the probability of the same answer where no verifier does.
        knows_word: tells real words from misspelt ones.
        verifier: None leaves all to the scorer.
    """

    def __init__(
        self,
        scorer: Scorer,
        knows_word: KnowsWord | None = None,
        verifier: Verify | None = None,
    ) -> None:
        self._scorer = scorer
        self._knows_word = knows_word
        self._verifier = verifier
        self._context = ContextScore.bundled()
        for sample in _SAMPLES:
            analyse(sample)

    @property
    def fingerprint(self) -> str:
        """What changes whenever scores would."""
        if self._verifier is None:
            return self._scorer.fingerprint
        return f"{self._verifier.fingerprint}+{self._scorer.fingerprint}"

    @property
    def least_similarity(self) -> float:
        """The cosine under which no candidate can be served."""
        return self._scorer.least_similarity

    async def decide(self, text: str, threshold: float, found: Iterable[Found]) -> Decision:
        """Serve the candidate with the highest score that reaches the threshold."""
        weighed = [self._weigh(text, item, _own(threshold, item)) for item in found]
        if not weighed:
            return Decision(None, Judgement())
        if self._verifier is None:
            weighed = [self._scored(item) for item in weighed]
        else:
            weighed = await self._verified(threshold, weighed, self._verifier)
        judged = [
            (_against(_own(threshold, item.found), item), item.found.entry) for item in weighed
        ]
        best, entry = max(judged, key=_rank)
        judgement = Judgement(
            threshold=next(
                _own(threshold, item.found) for item in weighed if item.found.entry is entry
            ),
            similarity=best.similarity,
            score=best.score,
            reasons=best.reasons,
            candidates=tuple(candidate for candidate, _ in judged),
        )
        return Decision(entry if best.reasons[-1].verdict == "pass" else None, judgement)

    def _weigh(self, text: str, found: Found, threshold: float = 1.0) -> _Weighed:
        """Settle what needs no score: equal texts, vetoes, differences that mean nothing."""
        fit = found.fit
        asked, stored = (text, found.entry.text or "") if fit is None else fit.texts
        before = () if fit is None else (fit.reason,)
        veto = self._hindrance(asked, stored, found)
        if veto is not None:
            return _Weighed(found, 0.0, (veto,))
        if normalise(asked) == normalise(stored):
            return _settled(found, 1.0, (*before, Reason("equal", "pass", "the same text")))
        comparison = compare(analyse(asked), analyse(stored), self._knows_word)
        veto = first_veto(comparison)
        if veto is not None:
            return _Weighed(found, 0.0, (*before, veto))
        reasons = (*before, Reason("guards", "pass"))
        if says_nearly_the_same(comparison):
            score = self._scorer.score(found.similarity, comparison)
            if says_the_same(comparison) or score >= threshold:
                return _settled(found, score, reasons)
        return _Weighed(found, 0.0, reasons, _Open(((asked, stored), *_doubts(found)), comparison))

    def _hindrance(self, text: str, stored: str, found: Found) -> Reason | None:
        """Return why two texts need not even be compared."""
        if found.fit is not None and found.fit.reason.verdict == "veto":
            return found.fit.reason
        if not found.is_young:
            return Reason("age", "veto", "older than the request allows")
        if normalise(text) == normalise(stored):
            return None
        if found.similarity < self._scorer.least_similarity:
            return Reason("similarity", "veto", f"{found.similarity:.4f} is too low")
        if max(len(text), len(stored)) > _LONG_TEXT:
            return Reason("length", "veto", "too long to be compared word by word")
        return None

    def _scored(self, item: _Weighed) -> _Weighed:
        if item.open is None:
            return item
        if item.open.comparison is None or _doubts(item.found):
            return _unverified(item, "the history is in other words, and there is no verifier")
        score = self._scorer.score(item.found.similarity, item.open.comparison)
        return replace(item, score=score, open=None)

    async def _verified(
        self, threshold: float, weighed: list[_Weighed], verifier: Verify
    ) -> list[_Weighed]:
        """Ask the verifier of what is open, nearest first, until one may be served."""
        result = list(weighed)
        places = [i for i, item in enumerate(weighed) if _fits(verifier, item)]
        places.sort(key=lambda i: -weighed[i].found.similarity)
        why = "others are nearer, or it is too long"
        served = any(_may(threshold, item) for item in weighed)
        for chunk in (places[:_FIRST_VERIFIED], places[_FIRST_VERIFIED:_MOST_VERIFIED]):
            if served:
                why = "another may be served"
            if served or not chunk:
                break
            pairs = [_pairs(weighed[i]) for i in chunk]
            try:
                scores = iter(await verifier.scores([pair for own in pairs for pair in own]))
            except StoreUnavailable as error:
                why = str(error)
                break
            for i, own in zip(chunk, pairs, strict=True):
                result[i] = self._closed(weighed[i], min(next(scores) for _ in own), verifier)
                served = served or _may(threshold, result[i])
        return [_unverified(item, why) for item in result]

    def _closed(self, item: _Weighed, least: float, verifier: Verify) -> _Weighed:
        """Score an open candidate by the least that the verifier gave."""
        assert item.open is not None, "nothing is open"
        fit = item.found.fit
        if fit is not None and fit.refers:
            score = self._context.of(least, verifier.fingerprint)
        else:
            score = least
        reasons = (*item.reasons, Reason("verify", "pass", f"{least:.4f}"))
        return replace(item, score=min(score, item.open.settled), reasons=reasons, open=None)


def _settled(found: Found, score: float, reasons: tuple[Reason, ...]) -> _Weighed:
    """Take the rules' score of the last messages, unless the histories leave doubts."""
    doubts = _doubts(found)
    if not doubts:
        return _Weighed(found, score, reasons)
    return _Weighed(found, 0.0, reasons, _Open(doubts, settled=score))


def _doubts(found: Found) -> tuple[Pair, ...]:
    return () if found.fit is None else tuple((d.one, d.other) for d in found.fit.doubts)


def _pairs(item: _Weighed) -> tuple[Pair, ...]:
    return () if item.open is None else item.open.pairs


def _fits(verifier: Verify, item: _Weighed) -> bool:
    """Say whether a candidate is open and all its texts are short enough to be read whole."""
    texts = [text for pair in _pairs(item) for text in pair]
    return bool(texts) and all(verifier.fits(text) for text in texts)


def _capped(item: _Weighed) -> float:
    """Return the score, at most what the histories leave."""
    return item.score if item.found.fit is None else min(item.score, item.found.fit.score)


def _own(threshold: float, found: Found) -> float:
    """Return the entry's own threshold, or else the intent's."""
    return threshold if found.threshold is None else found.threshold


def _may(threshold: float, item: _Weighed) -> bool:
    passed = item.open is None and all(reason.verdict == "pass" for reason in item.reasons)
    return passed and _capped(item) >= _own(threshold, item.found)


def _rank(judged: tuple[Candidate, Entry]) -> tuple[bool, float, float]:
    """Return what the best is chosen by: first of all, that it may be served."""
    candidate, _ = judged
    return candidate.reasons[-1].verdict == "pass", candidate.score, candidate.similarity


def _unverified(item: _Weighed, why: str) -> _Weighed:
    """Close a candidate that the verifier was not asked of: it cannot be served."""
    if item.open is None:
        return item
    return replace(item, reasons=(*item.reasons, Reason("verify", "skip", why)), open=None)


def _against(threshold: float, item: _Weighed) -> Candidate:
    reasons, score, entry = item.reasons, _capped(item), item.found.entry
    if all(reason.verdict == "pass" for reason in reasons):
        verdict: Verdict = "pass" if score >= threshold else "veto"
        reasons = (*reasons, Reason("threshold", verdict, f"{score:.4f} / {threshold:.4f}"))
    return Candidate(entry.entry_id, item.found.similarity, score, reasons, entry.text or "")
