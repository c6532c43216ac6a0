"""Judge stored entries for a new text: guards, score, threshold. Knows no store and no model."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from semantic_layer.calibration.pooled import shifted
from semantic_layer.chats.context_score import ContextScore
from semantic_layer.comparison.edits import Comparison, compare
from semantic_layer.comparison.guards import Ruling, first_veto, ruling
from semantic_layer.comparison.literal import is_same_text
from semantic_layer.comparison.places import share_renamed
from semantic_layer.entry import Entry
from semantic_layer.errors import StoreUnavailable
from semantic_layer.models.scorer import Scorer, is_in_place, says_nearly_the_same, says_the_same
from semantic_layer.outcome import Judgement, Reason
from semantic_layer.text.analysis import analyse
from semantic_layer.text.likeness import KnowsWord
from semantic_layer.verifying import AskedAhead, Unasked, Verify
from semantic_layer.weighing import (
    Found,
    Open,
    Weighed,
    against,
    doubts_of,
    hindrance,
    may_be_served,
    num_verified,
    own_threshold,
    pairs_of,
    rank,
    refusal,
    settled,
    unverified,
)

_SAMPLES = ("What is it?", "这是什么？")  # read once ahead, so that word lists are loaded
NO_MODEL = "a dry run asks no model"
_MOST_VERIFIED = 5
_RENAMED = 0.02  # of cosine, that another name of a place may cost (measured: at most .009)
_ROUNDING = 0.002  # of cosine, by which machines and numbers of threads differ (measured: .0018)
_ANOTHER = "another may be served"
_FIRST_VERIFIED = 1  # the nearest is asked of alone: it is the one served most of the time


@dataclass(frozen=True, slots=True)
class Decision:
    """The entry to serve, if any, and the numbers of it or of the best one refused.

    ``weighed`` is what a search that goes on need not find out again.
    """

    entry: Entry | None
    judgement: Judgement
    weighed: tuple[Weighed, ...] = ()

    @property
    def is_final(self) -> bool:
        """Whether others that are less near can't be served: one is, or enough were read."""
        return self.entry is not None or num_verified(self.weighed) >= _MOST_VERIFIED


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

    def dry(self) -> "Judge":
        """Return the judge of dry runs, which ask no served model."""
        verifier = self._verifier
        if verifier is not None and verifier.asks_model:
            verifier = Unasked(verifier, NO_MODEL)
        return Judge(self._scorer, self._knows_word, verifier)

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

    @property
    def least_verified(self) -> float:
        """The cosine under which none but the nearest can be, in chats without a history."""
        return self._scorer.least_verified

    async def decide(
        self,
        text: str,
        threshold: float,
        found: Iterable[Found],
        before: Sequence[Weighed] = (),
    ) -> Decision:
        """Serve the candidate with the highest score of those that had to be looked at.

        They are given nearest first. Once rules let one be served, no other is compared; those of
        ``before`` are nearer, and were refused.
        """
        weighing = self._weigh_all(text, threshold, found, first=not before)
        if self._verifier is None:
            weighed = [self._scored(item) for item in (*before, *weighing)]
        elif before or self._verifier.asks_model:
            weighed = await self._verified(threshold, [*before, *weighing], self._verifier)
        else:
            weighed = await self._verified_meanwhile(threshold, weighing, self._verifier)
        if not weighed:
            return Decision(None, Judgement())
        judged = [
            (against(own_threshold(threshold, item.found), item), item.found.entry)
            for item in weighed
        ]
        best, entry = max(judged, key=rank)
        judgement = Judgement(
            threshold=next(
                own_threshold(threshold, item.found)
                for item in weighed
                if item.found.entry is entry
            ),
            similarity=best.similarity,
            score=best.score,
            reasons=best.reasons,
            candidates=tuple(candidate for candidate, _ in judged),
        )
        served = entry if best.reasons[-1].verdict == "pass" else None
        return Decision(served, judgement, tuple(weighed))

    def _weigh_all(
        self, text: str, threshold: float, found: Iterable[Found], *, first: bool
    ) -> Iterator[Weighed]:
        """Weigh until rules let one be served; ``first`` of those they leave open is nearest."""
        served = False
        for item in found:
            if served:
                yield Weighed(item, 0.0, (Reason("guards", "skip", _ANOTHER),))
                continue
            least = self._least(item, nearest=first)
            weighed = self._weigh(text, item, own_threshold(threshold, item), least)
            first = first and weighed.open is None
            served = may_be_served(threshold, weighed)
            yield weighed

    def _least(self, found: Found, *, nearest: bool) -> float:
        """Return the cosine under which a candidate can't be served."""
        if self._verifier is None or found.fit is not None:
            return self._scorer.least_similarity
        return self._scorer.least_nearest if nearest else self._scorer.least_verified

    def _weigh(self, text: str, found: Found, threshold: float, least: float) -> Weighed:
        """Settle what needs no score: equal texts, vetoes, differences that mean nothing."""
        fit = found.fit
        asked, stored = (text, found.entry.text or "") if fit is None else fit.texts
        before = () if fit is None else (fit.reason,)
        veto = refusal(found)
        if veto is None and is_same_text(asked, stored):
            return settled(found, 1.0, (*before, Reason("equal", "pass", "the same text")))
        veto = veto or hindrance(asked, stored, found, least)
        if veto is not None and not self._may_be_same(veto, asked, stored, found, least):
            return Weighed(found, 0.0, (veto,))
        comparison = compare(analyse(asked), analyse(stored), self._knows_word)
        ruled = self._rule(comparison, goes_on=fit is not None and fit.refers)
        if ruled.veto is not None:
            return Weighed(found, 0.0, (*before, ruled.veto))
        reasons = (*before, *(ruled.doubts or (Reason("guards", "pass"),)))
        is_clear = not ruled.doubts and not self._may_be_turned(comparison)
        if is_clear and says_nearly_the_same(comparison):
            score = self._scorer.score(found.similarity, comparison)
            if says_the_same(comparison) or score >= threshold:
                return settled(found, score, reasons)
        if veto is not None:
            return Weighed(found, 0.0, (veto,))
        parts = (("last", (asked, stored)), *doubts_of(found))
        return Weighed(found, 0.0, reasons, Open(parts, comparison, ruled.cost))

    def _may_be_same(
        self, veto: Reason, asked: str, stored: str, found: Found, least: float
    ) -> bool:
        """Say whether rules may call the same what lies too far apart.

        By no more than machines round, or for a place's other name.
        """
        if veto.check != "similarity":
            return False
        if found.similarity >= least - _ROUNDING:
            return True
        is_near = found.similarity >= self._scorer.least_similarity - _RENAMED
        return is_near and share_renamed(asked, stored)

    def _rule(self, comparison: Comparison, *, goes_on: bool) -> Ruling:
        """Take every finding for a veto where there is no verifier to read what is open."""
        if self._verifier is None:
            return Ruling(first_veto(comparison))
        return ruling(comparison, goes_on=goes_on)

    def _may_be_turned(self, comparison: Comparison) -> bool:
        """Say whether words stand elsewhere, which a verifier can read and rules cannot."""
        return self._verifier is not None and not is_in_place(comparison)

    def _scored(self, item: Weighed) -> Weighed:
        if item.open is None:
            return item
        if item.open.comparison is None or doubts_of(item.found):
            return unverified(item, "the history is in other words, and there is no verifier")
        score = self._scorer.score(item.found.similarity, item.open.comparison)
        return replace(item, score=score, open=None)

    async def _verified_meanwhile(
        self, threshold: float, weighing: Iterator[Weighed], verifier: Verify
    ) -> list[Weighed]:
        """Weigh the others while the verifier reads the nearest that is open; see `_verified`.

        In vain where rules let another be served, which is seldom.
        """
        weighed: list[Weighed] = []
        early = None
        for item in weighing:
            weighed.append(item)
            if _fits(verifier, item):
                early = AskedAhead(verifier, pairs_of(item))
                await asyncio.sleep(0)  # the question is put
                break
        try:
            weighed += weighing
            return await self._verified(threshold, weighed, early or verifier)
        finally:
            if early is not None:
                early.drop()

    async def _verified(
        self, threshold: float, weighed: list[Weighed], verifier: Verify
    ) -> list[Weighed]:
        """Ask the verifier of what is open, nearest first, until one may be served."""
        result = list(weighed)
        places = [i for i, item in enumerate(weighed) if _fits(verifier, item)]
        places.sort(key=lambda i: -weighed[i].found.similarity)
        why = "others are nearer, or it is too long"
        served = any(may_be_served(threshold, item) for item in weighed)
        num_before = num_verified(weighed)
        places = places[: _MOST_VERIFIED - num_before]
        first = _MOST_VERIFIED if num_before else _FIRST_VERIFIED
        for chunk in (places[:first], places[first:]):
            if served:
                why = _ANOTHER
            if served or not chunk:
                break
            pairs = [pairs_of(weighed[i]) for i in chunk]
            try:
                scores = iter(await verifier.scores([pair for own in pairs for pair in own]))
            except StoreUnavailable as error:
                why = str(error)
                break
            for i, own in zip(chunk, pairs, strict=True):
                result[i] = self._closed(weighed[i], [next(scores) for _ in own], verifier)
                served = served or may_be_served(threshold, result[i])
        return [unverified(item, why) for item in result]

    def _closed(self, item: Weighed, scores: list[float], verifier: Verify) -> Weighed:
        """Score an open candidate by what the verifier gave to its parts."""
        assert item.open is not None, "nothing is open"
        fit, least = item.found.fit, min(scores)
        if item.open.cost:
            scores[0] = shifted(scores[0], -item.open.cost)
        score = min(scores)
        if fit is not None and fit.refers:
            of_parts = zip((part for part, _ in item.open.parts), scores, strict=True)
            score = self._context.of(of_parts, verifier.fingerprint)
        reasons = (*item.reasons, Reason("verify", "pass", f"{least:.4f}"))
        return replace(item, score=min(score, item.open.settled), reasons=reasons, open=None)


def _fits(verifier: Verify, item: Weighed) -> bool:
    """Say whether a candidate is open and all its texts are short enough to be read whole."""
    texts = [text for pair in pairs_of(item) for text in pair]
    return bool(texts) and all(verifier.fits(text) for text in texts)
