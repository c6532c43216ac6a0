"""Explains what a prompt finds in the prefix cache, and why no more. Knows no HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gateway.backends.recent_prompts import SAVED_TURNS, Nearest, RecentPrompts
from gateway.backends.tokenizer import Tokenizer
from prefix_layer import PUBLIC_SALT, Finding, Probed, find_cause

SHOWN_TOKENS = 32
MIN_BEHIND = 24  # tokens alike behind a difference that make it an edit of the last message


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as the model gets it.

    ``text`` is as `Tokenizer.render` gives it; ``roles`` and ``turns`` tell its messages apart.
    """

    text: str
    token_ids: list[int]
    roles: tuple[str, ...] = ()
    turns: tuple[bytes, ...] = ()


class Divergence(msgspec.Struct, frozen=True):
    """The first token that is not cached, with the text around it in both prompts.

    ``text_cached`` is None when nothing else stands there, or what stands there is another's.
    """

    token: int
    text_before: str
    text_here: str
    text_cached: str | None


class Explanation(msgspec.Struct, frozen=True):
    """What a request would find in the prefix cache, and the cause of the miss behind that."""

    prompt_tokens: int
    cached_tokens: int
    by_tier: dict[str, int]
    first_divergence: Divergence | None
    cause: str
    detail: str


class Explainer:
    """Compares prompts with those seen before.

    ``fingerprint`` is that of the model, its weights and its texts joined by a dash.
    """

    def __init__(
        self, tokenizer: Tokenizer, recent: RecentPrompts, fingerprint: str, block_size: int
    ) -> None:
        self._tokenizer = tokenizer
        self._recent = recent
        self._fingerprint = fingerprint
        self._block_size = block_size

    def explain(
        self, prompt: Prompt, salt: bytes, probed: Probed, *, is_others: bool
    ) -> Explanation:
        """Name the cause; ``is_others`` says that another tenant has more of the prompt cached."""
        cached = probed.num_cached_tokens
        if cached >= len(prompt.token_ids) - 1:
            return self._explanation(prompt, probed, None, "none", "the whole prompt is cached")
        near = self._recent.nearest((salt, PUBLIC_SALT), prompt.token_ids)
        lost = 0 if near is None else near.num_common - cached
        is_tail = near is not None and near.num_common >= len(prompt.token_ids) - 1 and lost > 0
        if probed.num_evicted_tokens or lost >= self._block_size or is_tail:
            return self._lost(prompt, probed, max(lost, probed.num_evicted_tokens))
        if self._was_lost_by_a_restart(prompt, salt, probed, near):
            text = f"seen before the start at {self._since}; what no disk tier keeps is gone"
            return self._parting(prompt, probed, None, ("cleared", text))
        if (changed := self._changed_model(prompt, salt, near)) is not None:
            return self._parting(prompt, probed, None, changed)
        if is_others:
            text = "another tenant's prompt begins like this; tenants never share cached prompts"
            return self._parting(prompt, probed, None, ("other_tenant", text))
        return self._difference(prompt, probed, near)

    def _lost(self, prompt: Prompt, probed: Probed, num_lost: int) -> Explanation:
        if probed.num_evicted_tokens or num_lost < self._block_size:
            cause = "evicted"
            text = "were cached and had to make room; pin them or enlarge the pool"
        else:
            cause = "cleared"
            text = "were cached until a reset, a restart of the engine, or the end of kv_ttl_s"
        return self._parting(prompt, probed, None, (cause, f"{num_lost} tokens {text}"))

    def _changed_model(
        self, prompt: Prompt, salt: bytes, near: Nearest | None
    ) -> tuple[str, str] | None:
        if near is not None and near.seen.turns[:1] == prompt.turns[:1]:
            return None
        former = self._recent.former_models(salt, prompt.turns, self._fingerprint)
        if not former:
            return None
        weights, _, _ = self._fingerprint.partition("-")
        if former[0].partition("-")[0] == weights:
            return "template_change", "seen before under another chat template or tokenizer"
        return "model_change", "seen before by another model, dtype or device"

    def _was_lost_by_a_restart(
        self, prompt: Prompt, salt: bytes, probed: Probed, near: Nearest | None
    ) -> bool:
        """Say whether an earlier run is known to have had what is missing now.

        Of what was asked then only the first messages are known.
        """
        whole = len(prompt.turns) <= SAVED_TURNS or not probed.num_cached_tokens
        again = near is not None and near.seen.turns[:SAVED_TURNS] == prompt.turns[:SAVED_TURNS]
        known = self._recent.was_known(salt, prompt.turns, self._fingerprint)
        return known and whole and not again

    @property
    def _since(self) -> str:
        return f"{self._recent.since:%Y-%m-%d %H:%M:%S} UTC"

    def _difference(self, prompt: Prompt, probed: Probed, near: Nearest | None) -> Explanation:
        ids, cached = prompt.token_ids, probed.num_cached_tokens
        if near is not None and near.num_reusable >= cached:
            theirs: Sequence[int] = near.seen.token_ids
            start = near.num_common
        else:
            theirs, start, near = [*ids[:cached], *probed.continuation], cached, None
        found = find_cause(self._tokenizer.show(ids), self._tokenizer.show(theirs))
        if found is None:
            goes_on = "the prompt goes on where the cached one ends"
            text = goes_on if cached else f"nothing like it was asked since {self._since}"
            return self._parting(prompt, probed, None, ("never_seen", text))
        judged = self._judged(found, prompt, near)
        detail = judged.detail
        if near is not None and near.num_behind:
            detail += f"; {near.num_behind} tokens behind it are alike and can't be reused"
        divergence = self._divergence(ids, start, theirs)
        return self._explanation(prompt, probed, divergence, judged.cause, detail)

    def _judged(self, found: Finding, prompt: Prompt, near: Nearest | None) -> "Finding | _Named":
        """Tell an edited conversation and a new message from an edited text."""
        turns, seen = prompt.turns, () if near is None else near.seen.turns
        pairs = enumerate(zip(turns, seen, strict=False))
        common = next((i for i, (a, b) in pairs if a != b), min(len(turns), len(seen)))
        if common < len(turns) - 1 and turns[common] in seen[common + 1 :]:
            text = f"messages before message {common} ({prompt.roles[common]}) were dropped"
            return _Named("edited_history", text)
        if found.cause not in ("edited_text", "never_seen"):
            return found
        behind = 0 if near is None else near.num_behind
        if common >= len(turns) - 1 and behind < MIN_BEHIND:
            return _Named("never_seen", "the last message is new")
        is_turn = common < len(prompt.roles) and prompt.roles[common] != "system"
        answered = near is not None and 0 < common == len(seen) < len(turns) - 1
        if is_turn and (answered or not set(turns[common + 1 :]).isdisjoint(seen[common:])):
            who = prompt.roles[common]
            text = f"message {common} ({who}) was edited, or messages before it were dropped"
            return _Named("edited_history", f"{text}: {found.detail}")
        reusable = 0 if near is None else near.num_reusable
        if behind < MIN_BEHIND and (is_turn or reusable < len(prompt.token_ids) / 2):
            text = f"no prompt since {self._since} has a text like this"
            return _Named("never_seen", text)
        return found

    def _parting(
        self,
        prompt: Prompt,
        probed: Probed,
        theirs: Sequence[int] | None,
        cause: tuple[str, str],
    ) -> Explanation:
        divergence = self._divergence(prompt.token_ids, probed.num_cached_tokens, theirs)
        return self._explanation(prompt, probed, divergence, *cause)

    def _explanation(
        self, prompt: Prompt, probed: Probed, divergence: Divergence | None, cause: str, detail: str
    ) -> Explanation:
        return Explanation(
            prompt_tokens=len(prompt.token_ids),
            cached_tokens=probed.num_cached_tokens,
            by_tier=probed.tokens_by_tier,
            first_divergence=divergence,
            cause=cause,
            detail=detail,
        )

    def _divergence(
        self, ids: Sequence[int], start: int, theirs: Sequence[int] | None
    ) -> Divergence:
        before, here = self._around(ids, start)
        cached = None if theirs is None else self._around(theirs, start)[1]
        return Divergence(start, before, here, cached)

    def _around(self, ids: Sequence[int], start: int) -> tuple[str, str]:
        """Return the text before and behind a token, cut between characters."""
        first = max(0, start - SHOWN_TOKENS)
        before = self._tokenizer.show(ids[first:start]).rstrip("\ufffd")
        both = self._tokenizer.show(ids[first : start + SHOWN_TOKENS])
        return before.lstrip("\ufffd"), both[len(before) :].rstrip("\ufffd")


@dataclass(frozen=True, slots=True)
class _Named:
    """A cause that only the conversation tells."""

    cause: str
    detail: str
