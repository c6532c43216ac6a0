"""Reads a request: what similarity is judged on, its vector, its intent, and what that allows."""

from semantic_layer.canonical import scope_of
from semantic_layer.conversation import split
from semantic_layer.errors import StoreUnavailable, TextTooLong
from semantic_layer.guarded import GuardedParts, Stopwatch
from semantic_layer.intent import DetectIntent
from semantic_layer.lookup import Lookup
from semantic_layer.outcome import Reason
from semantic_layer.policy import CachePolicy
from semantic_layer.thresholds import Thresholds


class RequestReader:
    """Fills in what a look-up by likeness, or a store, needs to know of its request."""

    def __init__(
        self,
        parts: GuardedParts,
        policy: CachePolicy,
        detect: DetectIntent,
    ) -> None:
        self._parts = parts
        self.policy = policy
        self._detect = detect

    async def read(self, look: Lookup, thresholds: Thresholds, watch: Stopwatch) -> None:
        """Find the text, its scope and vector, and the intent; do as the intent's rule says."""
        self._read_turn(look)
        self._obey(look, look.control.intent, thresholds)
        if look.text is None:
            return
        if look.scope is not None:
            await self._embed(look, watch)
        if look.intent is None:
            self._obey(look, self._detect(look.text, look.embedding), thresholds)

    def _read_turn(self, look: Lookup) -> None:
        """Find out what similarity is judged on, and whether there is a scope."""
        turn = split(look.query, look.control)
        if isinstance(turn, str):
            look.reasons.append(Reason("eligible", "skip", turn))
            return
        look.text, look.chat = turn.text, turn.chat
        if not (self.policy.semantic and look.control.semantic and self._parts.embedder):
            look.reasons.append(Reason("eligible", "skip", "semantic look-up is off"))
            return
        look.scope = scope_of(look.query, turn, look.control.context)

    def _obey(self, look: Lookup, intent: str | None, thresholds: Thresholds) -> None:
        """Give the look-up its intent, and what that intent's rule leaves of it."""
        look.know(intent, thresholds)
        rule = self.policy.rule_of(intent)
        if rule.cacheable and (rule.semantic or look.scope is None):
            return
        what = "answers exact repeats only" if rule.cacheable else "is never cached"
        look.reasons.append(Reason("intent", "skip", f"{intent} {what}"))
        look.is_cacheable, look.scope, look.embedding = rule.cacheable, None, None

    async def _embed(self, look: Lookup, watch: Stopwatch) -> None:
        assert look.chat is not None, "a scope without a chat"
        try:
            look.embedding = await self._parts.embed(look.chat.resolved)
        except TextTooLong as error:
            look.scope = None
            look.reasons.append(Reason("window", "skip", str(error)))
        except StoreUnavailable as error:
            look.reasons.append(Reason("embed", "skip", str(error)))
        watch.lap("embed")
