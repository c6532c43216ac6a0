"""A conversation that only grows, and what it costs when it does not. Knows no server."""

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.backends.tokenizer import Tokenizer
from gateway.layout.canonical import Properties, canonical_result, canonical_tools
from gateway.layout.kv_mirror import Estimate, KvMirror

Message = dict[str, Any]


class ChainBroken(UserWarning):
    """A conversation was rewritten, so that a part of it must be computed again."""


@dataclass(frozen=True, slots=True)
class Break:
    """What rewriting a conversation costs its next turn, and what it saves.

    ``lost_tokens`` are in the cache now and are not found any more by the new prompt.
    """

    before: Estimate
    after: Estimate

    @property
    def lost_tokens(self) -> int:
        """Cached tokens that the conversation gives up."""
        return max(self.before.hit_tokens - self.after.hit_tokens, 0)

    @property
    def more_computed_tokens(self) -> int:
        """Tokens that the next turn computes more than without the change; below 0 it gains."""
        return self.after.computed_tokens - self.before.computed_tokens

    @property
    def saved_tokens(self) -> int:
        """Tokens by which the prompt becomes shorter."""
        return self.before.prompt_tokens - self.after.prompt_tokens

    def __str__(self) -> str:
        return (
            f"the next turn computes {self.after.computed_tokens} tokens instead of "
            f"{self.before.computed_tokens}: {self.lost_tokens} cached tokens are given up for a "
            f"prompt that is {self.saved_tokens} tokens shorter"
        )


class ChatManager:
    """One conversation. Turns are appended; `trim`, `summarise` and `replace` break the chain.

    Args:
        model: a model folder, or its tokenizer where several conversations share one.
        system: what stands first, the same in every turn.
        tools: definitions of tools, put in canonical order.
        block_size: of an engine that reuses whole blocks only; Strata's reuses single tokens.
        properties: whether the arguments of tools are sorted too.

    Raises:
        BackendUnavailable: the folder holds no tokenizer.
        ValueError: ``block_size`` is no whole number from 1 on.
    """

    def __init__(
        self,
        model: Path | str | Tokenizer,
        *,
        system: str = "",
        tools: Sequence[dict[str, Any]] = (),
        block_size: int = 1,
        properties: Properties = "kept",
    ) -> None:
        if type(block_size) is not int or block_size < 1:
            raise ValueError(f"block_size must be a whole number from 1 on, not {block_size!r}")
        tokenizer = Tokenizer(Path(model)) if isinstance(model, Path | str) else model
        self._mirror = KvMirror(tokenizer, block_size)
        self._tools = canonical_tools(deepcopy(list(tools)), properties)
        self._messages: list[Message] = [{"role": "system", "content": system}] if system else []

    @property
    def messages(self) -> tuple[Message, ...]:
        """A copy of the turns so far."""
        return tuple(deepcopy(self._messages))

    @property
    def body(self) -> dict[str, Any]:
        """The fields to put into a request, as an SDK takes them; the caller's own copy."""
        return deepcopy(self._body(self._messages))

    def say(self, text: str) -> None:
        """Append what the user says.

        Raises:
            TypeError: it is no text.
        """
        _check_text("text", text)
        self._messages.append({"role": "user", "content": text})

    def give_result(self, tool_call_id: str, result: Any) -> None:
        """Append what a tool returned, in canonical form."""
        content = canonical_result(result)
        self._messages.append({"role": "tool", "tool_call_id": tool_call_id, "content": content})

    def take_answer(self, answer: str | Mapping[str, Any], *, from_cache: bool = False) -> None:
        """Append what the model answered to all before it.

        ``answer`` is its text, or the whole chat completion, whose counts make the estimates exact.
        ``from_cache`` says that a response cache gave it (``x-strata-cache``), so that no model has
        computed this prompt.

        Raises:
            ValueError: a mapping that is no chat completion.
        """
        message, num_tokens, is_whole = _read(answer)
        if not from_cache:
            text = message.get("content") or ""
            body = self._body(self._messages)
            if message.get("tool_calls"):
                text = self._mirror.text_after(body, message)
            self._mirror.saw(body, text, num_tokens, is_whole=is_whole)
        self._messages.append(message)

    def estimate(self) -> Estimate:
        """Say how much of the conversation, sent as it is now, is in the cache."""
        return self._mirror.estimate(self._body(self._messages))

    def cost_of(self, messages: Sequence[Message]) -> Break:
        """Say what it would cost to go on with these turns instead of the present ones."""
        return Break(self.estimate(), self._mirror.estimate(self._body(messages)))

    def trim(self, keep_last: int) -> Break:
        """Drop all turns but the system's and the last ones; the first kept is a user's.

        Warns with `ChainBroken` where that costs the next turn cached tokens.

        Raises:
            ValueError: nothing would be left.
        """
        return self._change(self.trimmed(keep_last))

    def trimmed(self, keep_last: int) -> list[Message]:
        """Return the turns that `trim` would leave, for `cost_of`.

        Raises:
            ValueError: nothing would be left.
        """
        first = self._num_system
        kept = self._messages[first:][-keep_last:] if keep_last > 0 else []
        while kept and kept[0]["role"] != "user":
            kept = kept[1:]
        if not kept:
            raise ValueError("keep_last: leaves no turn of a user")
        return [*self._messages[:first], *kept]

    def summarise(self, summary: str, keep_last: int) -> Break:
        """Put a summary in the place of all turns but the system's and the last ones; warns too.

        Raises:
            ValueError: nothing would be left.
            TypeError: the summary is no text.
        """
        return self._change(self.summarised(summary, keep_last))

    def summarised(self, summary: str, keep_last: int) -> list[Message]:
        """Return the turns that `summarise` would leave, for `cost_of`.

        Raises:
            ValueError: nothing would be left.
            TypeError: the summary is no text.
        """
        _check_text("summary", summary)
        trimmed, first = self.trimmed(keep_last), self._num_system
        told = [
            {"role": "user", "content": f"Summary of what was said before:\n{summary}"},
            {"role": "assistant", "content": "Understood."},
        ]
        return [*trimmed[:first], *told, *trimmed[first:]]

    def replace(self, at: int, message: Message) -> Break:
        """Put another message in the place of one; warns too.

        Raises:
            IndexError: there is no such turn.
        """
        changed = list(self._messages)
        changed[at] = deepcopy(dict(message))
        return self._change(changed)

    @property
    def _num_system(self) -> int:
        return sum(message["role"] == "system" for message in self._messages[:1])

    def _change(self, messages: list[Message]) -> Break:
        cost = self.cost_of(messages)
        if cost.lost_tokens:
            warnings.warn(str(cost), ChainBroken, stacklevel=3)
        self._messages = messages
        return cost

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        tools = {"tools": list(self._tools)} if self._tools else {}
        return {"messages": list(messages), **tools}


def _read(answer: str | Mapping[str, Any]) -> tuple[Message, int | None, bool]:
    """Return an answer's message, its tokens where they are told, and whether it came to its end.

    Raises:
        ValueError: a mapping that is no chat completion.
    """
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}, None, True
    match answer:
        case {"choices": [{"message": dict(message), **choice}, *_]}:
            num_tokens = (answer.get("usage") or {}).get("completion_tokens")
            if num_tokens is not None and num_tokens < 0:
                raise ValueError(f"usage.completion_tokens must not be below 0, is {num_tokens}")
            kept = {"role": "assistant", "content": message.get("content")}
            if calls := message.get("tool_calls"):
                kept["tool_calls"] = deepcopy(calls)
            return kept, num_tokens, choice.get("finish_reason") != "length"
    raise ValueError("answer: expected text or a chat completion with a choice")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, not {type(value).__name__}")
