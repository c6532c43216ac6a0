"""What is known of a candidate so far: what rules leave open, its score and the reasons. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from semantic_layer.chats.context_score import Part
from semantic_layer.chats.histories import Fit
from semantic_layer.comparison.edits import Comparison
from semantic_layer.entry import Entry
from semantic_layer.models.verifier import Pair
from semantic_layer.outcome import Candidate, Reason, Verdict

_LONG_TEXT = 4_000  # characters; beyond, only equal texts are judged


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
class Open:
    """What rules leave open: the (asked, stored) texts to be scored, and what of the chats each is.

    ``comparison`` is that of the last messages when they are among them, and come first, with
    the ``cost`` of what guards left open, in log odds; else rules gave them ``settled``.
    """

    parts: tuple[tuple[Part, Pair], ...]
    comparison: Comparison | None = None
    cost: float = 0.0
    settled: float = 1.0

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The texts alone."""
        return tuple(pair for _, pair in self.parts)


@dataclass(frozen=True, slots=True)
class Weighed:
    """What rules say of a candidate; ``open`` is there while a score has to be found."""

    found: Found
    score: float
    reasons: tuple[Reason, ...]
    open: Open | None = None


def refusal(found: Found) -> Reason | None:
    """Return why an entry can't be served whatever its text says."""
    if found.fit is not None and found.fit.reason.verdict == "veto":
        return found.fit.reason
    return None if found.is_young else Reason("age", "veto", "older than the request allows")


def hindrance(text: str, stored: str, found: Found, least: float) -> Reason | None:
    """Return why two texts that are not the same need not even be compared."""
    if found.similarity < least:
        return Reason("similarity", "veto", f"{found.similarity:.4f} is too low")
    if max(len(text), len(stored)) > _LONG_TEXT:
        return Reason("length", "veto", "too long to be compared word by word")
    return None


def settled(found: Found, score: float, reasons: tuple[Reason, ...]) -> Weighed:
    """Take the rules' score of the last messages, unless the histories leave doubts."""
    doubts = doubts_of(found)
    if not doubts:
        return Weighed(found, score, reasons)
    return Weighed(found, 0.0, reasons, Open(doubts, settled=score))


def doubts_of(found: Found) -> tuple[tuple[Part, Pair], ...]:
    """Return what the histories leave for a verifier."""
    doubts = () if found.fit is None else found.fit.doubts
    return tuple((doubt.part, (doubt.one, doubt.other)) for doubt in doubts)


def pairs_of(item: Weighed) -> tuple[Pair, ...]:
    """Return the texts to be scored, none when nothing is open."""
    return () if item.open is None else item.open.pairs


def capped(item: Weighed) -> float:
    """Return the score, at most what the histories leave."""
    return item.score if item.found.fit is None else min(item.score, item.found.fit.score)


def own_threshold(threshold: float, found: Found) -> float:
    """Return the entry's own threshold, or else the intent's."""
    return threshold if found.threshold is None else found.threshold


def num_verified(weighed: Iterable[Weighed]) -> int:
    """Count the candidates that the verifier gave a score."""
    return sum(item.reasons[-1].check == "verify" and is_passed(item) for item in weighed)


def is_passed(item: Weighed) -> bool:
    """Say whether no check has refused a candidate."""
    return all(reason.verdict == "pass" for reason in item.reasons)


def may_be_served(threshold: float, item: Weighed) -> bool:
    """Say whether a candidate's score reaches its threshold and nothing speaks against it."""
    passed = item.open is None and is_passed(item)
    return passed and capped(item) >= own_threshold(threshold, item.found)


def rank(judged: tuple[Candidate, Entry]) -> tuple[bool, float, float]:
    """Return what the best is chosen by: first of all, that it may be served."""
    candidate, _ = judged
    return candidate.reasons[-1].verdict == "pass", candidate.score, candidate.similarity


def unverified(item: Weighed, why: str) -> Weighed:
    """Close a candidate that the verifier was not asked of: it cannot be served."""
    if item.open is None:
        return item
    return replace(item, reasons=(*item.reasons, Reason("verify", "skip", why)), open=None)


def against(threshold: float, item: Weighed) -> Candidate:
    """Return a candidate held against the threshold it must reach."""
    reasons, score, entry = item.reasons, capped(item), item.found.entry
    if is_passed(item):
        verdict: Verdict = "pass" if score >= threshold else "veto"
        reasons = (*reasons, Reason("threshold", verdict, f"{score:.4f} / {threshold:.4f}"))
    return Candidate(entry.entry_id, item.found.similarity, score, reasons, entry.text or "")
