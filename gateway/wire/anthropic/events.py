"""A Messages stream: our events as Anthropic's server-sent events.

Source: Anthropic documentation, "Streaming Messages". A backend counts its tokens at the end, so
``message_start`` has them only where the answer was known beforehand; ``message_delta`` always.
"""

from typing import Any

import msgspec

from gateway.backends.base import Event, Final, Finish, Usage
from gateway.blocks import Begin, BlockEvent, BlockReader, End, More, Note
from gateway.errors import StrataError
from gateway.wire.anthropic.answer import MessageOut, UsageOut, stop_of
from gateway.wire.anthropic.errors import anthropic_envelope

_encode = msgspec.json.Encoder().encode

_EMPTY: dict[str, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "refusal": {"type": "text", "text": ""},
    "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool_call": ("input_json_delta", "partial_json"),
}


class MessageStream:
    """Encodes the events of one answer."""

    def __init__(self, message_id: str, model: str, usage: Usage | None) -> None:
        self._id = message_id
        self._model = model
        self._usage = usage or Usage()
        self._reader = BlockReader()
        self._index = -1
        self._kind = ""
        self._has_begun = False
        self._is_refused = False
        self._finish = Finish(0, "stop")

    def encode(self, event: Event) -> bytes:
        """Return the server-sent events of one of ours; may be empty."""
        parts = [] if self._has_begun else [self._start()]
        parts += [self._block(one) for one in self._reader.read(event)]
        match event:
            case Finish(index=0):
                self._finish = event
            case Final():
                parts.append(self._end(event.usage))
        return b"".join(parts)

    async def end(self) -> bytes:
        """Return what follows the last event of a complete answer."""
        return _event({"type": "message_stop"})

    def fail(self, error: StrataError) -> bytes:
        """Return what ends a stream that broke."""
        return _event(anthropic_envelope(error))

    def _start(self) -> bytes:
        self._has_begun = True
        message = MessageOut(
            id=self._id,
            model=self._model,
            content=[],
            stop_reason=None,
            stop_sequence=None,
            usage=msgspec.structs.replace(UsageOut.of(self._usage), output_tokens=0),
        )
        return _event({"type": "message_start", "message": message}) + _event({"type": "ping"})

    def _block(self, event: BlockEvent) -> bytes:
        match event:
            case Begin():
                self._index += 1
                self._kind = event.kind
                self._is_refused = self._is_refused or event.kind == "refusal"
                return self._indexed("content_block_start", content_block=_opening(event))
            case More():
                return self._delta(event.text) if event.text else b""
            case Note():  # Anthropic's citations name other sources than chat's annotations do
                return b""
            case End():
                return self._indexed("content_block_stop")

    def _delta(self, text: str) -> bytes:
        kind, name = _DELTAS[self._kind]
        return self._indexed("content_block_delta", delta={"type": kind, name: text})

    def _indexed(self, kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, "index": self._index, **fields})

    def _end(self, usage: Usage) -> bytes:
        reason, stop = stop_of(self._finish, is_refused=self._is_refused)
        delta = {"stop_reason": reason, "stop_sequence": stop}
        return _event({"type": "message_delta", "delta": delta, "usage": UsageOut.of(usage)})


def _opening(event: Begin) -> dict[str, Any]:
    if event.kind != "tool_call":
        return _EMPTY[event.kind]
    return {"type": "tool_use", "id": event.call_id, "name": event.name, "input": {}}


def _event(data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), _encode(data))
