"""Reads a request: what similarity is judged on, its vector, its intent, and what that allows."""

from dataclasses import replace

from semantic_layer.beside import beside_loop
from semantic_layer.calibration.thresholds import Thresholds
from semantic_layer.canonical import scope_of
from semantic_layer.chats.conversation import split
from semantic_layer.chats.organisation import speaks_of_oneself, speaks_of_us, without_us
from semantic_layer.chats.rewriting import distrust
from semantic_layer.decision import NO_MODEL
from semantic_layer.errors import StoreUnavailable, TextTooLong
from semantic_layer.guarded import GuardedParts, Stopwatch
from semantic_layer.intents.clock import asks_the_clock
from semantic_layer.intents.intent import DetectIntent
from semantic_layer.intents.intent_rules import PERSONAL
from semantic_layer.lookup import Lookup
from semantic_layer.models.embedding import is_beyond
from semantic_layer.outcome import Reason
from semantic_layer.policy import CachePolicy


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
        await beside_loop(look.query.num_bytes, self._read_turn, look)
        self._obey(look, look.control.intent, thresholds)
        if look.text is None:
            return
        if look.scope is not None:
            await self._restate(look, watch)
            await self._embed(look, watch)
        if look.intent is None:
            self._obey(look, self._intent_of(look, look.text), thresholds)
            if asks_the_clock(look.text):
                self._leave_out(look, "what time it is is never cached")

    def _intent_of(self, look: Lookup, text: str) -> str:
        """Tell the intent; where documents are named "our order" is theirs, "my order" is not."""
        intent = self._detect(text, look.embedding)
        is_ours = look.control.context and speaks_of_us(text) and not speaks_of_oneself(text)
        if intent == PERSONAL and is_ours:
            return self._detect(without_us(text), look.embedding)
        return intent

    def _read_turn(self, look: Lookup) -> None:
        """Find out what similarity is judged on, and whether there is a scope."""
        turn = split(look.query, look.control)
        if isinstance(turn, str):
            look.reasons.append(Reason("eligible", "skip", turn))
            return
        look.text, look.chat = turn.text, turn.chat
        embedder = self._parts.embedder
        if embedder is None or not (self.policy.semantic and look.control.semantic):
            look.reasons.append(Reason("eligible", "skip", "semantic look-up is off"))
            return
        if is_beyond(turn.text, embedder.window_tokens):
            too_long = TextTooLong(f"{len(turn.text)} characters", embedder.window_tokens)
            look.reasons.append(Reason("window", "skip", str(too_long)))
            return
        look.scope = scope_of(look.query, turn, look.control.context)

    def _obey(self, look: Lookup, intent: str | None, thresholds: Thresholds) -> None:
        """Give the look-up its intent, and what that intent's rule leaves of it."""
        look.know(intent, thresholds)
        rule = self.policy.rule_of(intent)
        if rule.cacheable and (rule.semantic or look.scope is None):
            return
        if rule.cacheable and rule.in_chats and look.asked_chat.tells_records:
            return
        if rule.cacheable:
            look.reasons.append(Reason("intent", "skip", f"{intent} answers exact repeats only"))
            look.scope, look.embedding = None, None
        else:
            self._leave_out(look, f"{intent} is never cached")

    @staticmethod
    def _leave_out(look: Lookup, why: str) -> None:
        look.reasons.append(Reason("intent", "skip", why))
        look.is_cacheable, look.scope, look.embedding = False, None, None

    async def _restate(self, look: Lookup, watch: Stopwatch) -> None:
        """Have a last message that needs its history put so that it does not; or leave it."""
        chat = look.chat
        if chat is None or chat.is_whole or self._parts.rewriter is None:
            return
        if look.is_dry:
            look.reasons.append(Reason("rewrite", "skip", NO_MODEL))
            return
        try:
            text = await self._parts.rewrite(chat)
        except StoreUnavailable as error:
            look.reasons.append(Reason("rewrite", "skip", str(error)))
        else:
            flaw = distrust(text, chat)
            look.reasons.append(Reason("rewrite", "skip" if flaw else "pass", (flaw or text)[:200]))
            if not flaw:
                look.chat = replace(chat, restated=text)
        watch.lap("rewrite")

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
