"""One look-up on its way: what is known of it so far. Knows no store."""

from dataclasses import dataclass, field, replace
from typing import Literal

from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.calibration.trial import Arm
from semantic_layer.chats.chat import Chat
from semantic_layer.entry import Entry
from semantic_layer.outcome import Candidate, Hit, Judgement, Miss, Reason
from semantic_layer.request import CacheControl, CacheQuery
from semantic_layer.stores.vector_index import Vector


@dataclass(slots=True)
class Lookup:
    """What a look-up has found out so far. ``scope`` None means exact repeats only.

    Without ``is_cacheable`` the cache takes no part in the request. One that ``is_dry`` asks no
    served model.
    """

    query: CacheQuery
    control: CacheControl
    key: str
    now: float
    text: str | None = None
    chat: Chat | None = None
    scope: str | None = None
    intent: str | None = None
    threshold: float | None = None
    arm: Arm | None = None
    embedding: Vector | None = None
    is_cacheable: bool = True
    is_dry: bool = False
    reasons: list[Reason] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    rejected: list[Candidate] = field(default_factory=list)
    num_compared: int = 0  # messages of stored chats

    @property
    def restated(self) -> str:
        """The last message in a rewriter's words, "" without one."""
        return "" if self.chat is None else self.chat.restated

    def know(self, intent: str | None, thresholds: Thresholds) -> None:
        """Take note of the intent, and with it of the score that a hit must reach."""
        self.intent = intent
        if intent is None:
            return
        asked = self.control.threshold
        self.threshold = thresholds.of(intent, asked)
        tried = thresholds.tried_on(intent, self.key)
        if tried is not None:
            self.arm, threshold = tried
            if threshold is not None:
                self.threshold = threshold if asked is None else max(threshold, asked)

    def threshold_of(self, entry_id: str, thresholds: Thresholds) -> float | None:
        """Return the threshold that an entry has of its own; under trial none has."""
        if self.arm is not None or self.intent is None or entry_id not in thresholds.entries:
            return None
        return thresholds.of(self.intent, self.control.threshold, entry_id)

    @property
    def judgement(self) -> Judgement:
        """What is known so far, without candidates."""
        return Judgement(
            intent=self.intent,
            threshold=self.threshold,
            reasons=tuple(self.reasons),
            text=self.text,
            arm=self.arm,
        )

    def completed(self, judgement: Judgement) -> Judgement:
        """Add to a judgement of candidates what the look-up knows."""
        reasons = (*self.reasons, *judgement.reasons)
        if self.rejected and not judgement.candidates:
            reasons = self.rejected[0].reasons
        return replace(
            judgement,
            intent=self.intent,
            threshold=self.threshold if judgement.threshold is None else judgement.threshold,
            text=self.text,
            arm=self.arm,
            reasons=reasons,
            candidates=(*judgement.candidates, *self.rejected),
        )

    def hit(self, layer: Literal["exact", "semantic"], entry: Entry, judgement: Judgement) -> Hit:
        """Serve an entry."""
        overdue_s = -1.0 if entry.fresh_until is None else self.now - entry.fresh_until
        age_s = max(0.0, self.now - entry.created_at)
        return Hit(layer, entry, age_s, judgement, overdue_s if overdue_s >= 0 else None)

    def miss(self, judgement: Judgement, *, may_store: bool) -> Miss:
        """Serve nothing; the answer can be found by likeness where there is an embedding."""
        return Miss(
            key=self.key,
            scope=None if self.embedding is None else self.scope,
            text=self.text,
            embedding=self.embedding,
            may_store=may_store,
            judgement=judgement,
            restated=self.restated,
            asked_at=self.now,
        )

    def reject(self, entry: Entry, similarity: float) -> None:
        """Take note of an entry that a person found wrong for this text."""
        reason = Reason("feedback", "veto", "found wrong for this question")
        self.rejected.append(
            Candidate(entry.entry_id, similarity, 0.0, (reason,), entry.text or "")
        )

    @property
    def asked_chat(self) -> Chat:
        """The chat, of a look-up that has a scope."""
        assert self.chat is not None, "a scope without a chat"
        return self.chat

    def is_young(self, entry: Entry) -> bool:
        """Say whether the caller takes an answer of this age."""
        limit = self.control.max_age_s
        return limit is None or self.now - entry.created_at <= limit

    def is_repeated_by(self, entry: Entry) -> bool:
        """Say whether an entry answers exactly this request, lives, and is young enough."""
        return entry.entry_id == self.key and entry.expires_at > self.now and self.is_young(entry)

    def may_lead_to(self, entry: Entry) -> bool:
        """Say whether a point of this scope may still lead to this entry."""
        return (
            entry.scope == self.scope
            and entry.tenant == self.query.tenant
            and entry.text is not None
            and not entry.exact_only
            and entry.expires_at > self.now
            and not entry.is_stale(self.now)
        )
