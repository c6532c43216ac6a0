"""A Responses stream: our events as OpenAI's semantic events.

Source: OpenAI API reference, "Streaming events".
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from gateway.backends.base import Event, Final, Finish, Usage
from gateway.blocks import Begin, Block, BlockEvent, BlockReader, End, More, Note
from gateway.errors import StrataError
from gateway.wire.responses.answer import (
    ITEM_KINDS,
    Drafts,
    ResponseOut,
    annotation_of,
    item_of,
    logprobs_of,
    part_of,
    status_of,
)
from gateway.wire.responses.items import Item, item_id

Save = Callable[[ResponseOut], Awaitable[ResponseOut]]

_encode = msgspec.json.Encoder().encode

_DELTAS = {
    "text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning": "response.reasoning_text.delta",
    "tool_call": "response.function_call_arguments.delta",
}


class ResponseStream:
    """Encodes the events of one answer; ``save`` keeps the response before its end is told.

    What ``save`` returns is told.

    An item is told complete only when the next begins or the answer ends: a limit may have cut it.
    """

    def __init__(self, drafts: Drafts, save: Save) -> None:
        self._drafts = drafts
        self._save = save
        self._reader = BlockReader()
        self._number = 0
        self._output: list[Item] = []
        self._block: Block | None = None
        self._is_over = False
        self._has_begun = False
        self._reason = "stop"
        self._usage = Usage()

    def encode(self, event: Event) -> bytes:
        """Return the server-sent events of one of ours; may be empty."""
        parts = [] if self._has_begun else [self._start()]
        parts += [self._read(one) for one in self._reader.read(event)]
        match event:
            case Finish(index=0):
                self._reason = event.reason
            case Final():
                self._usage = event.usage
        return b"".join(parts)

    async def end(self) -> bytes:
        """Return what follows the last event of a complete answer."""
        parts = []
        if self._block is None:
            parts.append(self._begin(Begin("text")))
        parts.append(self._close(is_last=True))
        response = await self._save(self._drafts.ended(self._reason, self._output, self._usage))
        parts.append(self._event(f"response.{response.status}", response=response))
        return b"".join(parts)

    def fail(self, error: StrataError) -> bytes:
        """Return what ends a stream that broke."""
        start = b"" if self._has_begun else self._start()
        response = self._drafts.failed(error, self._output)
        return start + self._event("response.failed", response=response)

    def _start(self) -> bytes:
        self._has_begun = True
        begun = self._drafts.begun()
        return self._event("response.created", response=begun) + self._event(
            "response.in_progress", response=begun
        )

    def _read(self, event: BlockEvent) -> bytes:
        match event:
            case Begin():
                return self._close(is_last=False) + self._begin(event)
            case More():
                return self._more(event)
            case Note():
                return b"".join(map(self._note, event.annotations))
            case End():
                return b""

    def _begin(self, event: Begin) -> bytes:
        self._block = block = Block(event.kind, call_id=event.call_id, name=event.name)
        item = item_of(block, self._drafts.id, len(self._output), "in_progress")
        if event.kind == "tool_call":
            return self._placed("response.output_item.added", item=item)
        item["content"] = []
        return self._placed("response.output_item.added", item=item) + self._in_part(
            "response.content_part.added", part=part_of(block)
        )

    def _more(self, event: More) -> bytes:
        block = self._block
        assert block is not None, "a block grows after its beginning"
        block.text += event.text
        block.logprobs += event.logprobs
        if block.kind == "tool_call":
            return self._of_item(_DELTAS[block.kind], delta=event.text)
        if block.kind == "text":
            logprobs = logprobs_of(event.logprobs)
            return self._in_part(_DELTAS[block.kind], delta=event.text, logprobs=logprobs)
        return self._in_part(_DELTAS[block.kind], delta=event.text)

    def _note(self, annotation: dict[str, Any]) -> bytes:
        assert self._block is not None, "a text is cited after its beginning"
        place = len(self._block.annotations)
        self._block.annotations.append(annotation)
        told = {"annotation_index": place, "annotation": annotation_of(annotation)}
        return self._in_part("response.output_text.annotation.added", **told)

    def _close(self, *, is_last: bool) -> bytes:
        block = self._block
        if block is None:
            return b""
        status = status_of(self._reason, is_last=is_last)
        item = item_of(block, self._drafts.id, len(self._output), status)
        data = self._done(block) + self._placed("response.output_item.done", item=item)
        self._output.append(item)
        self._block = None
        return data

    def _done(self, block: Block) -> bytes:
        part = part_of(block)
        match block.kind:
            case "tool_call":
                return self._of_item(
                    "response.function_call_arguments.done",
                    name=block.name,
                    arguments=block.text,
                )
            case "text":
                told = {"text": block.text, "logprobs": part["logprobs"]}
                done = self._in_part("response.output_text.done", **told)
            case "refusal":
                done = self._in_part("response.refusal.done", refusal=block.text)
            case "reasoning":
                done = self._in_part("response.reasoning_text.done", text=block.text)
        return done + self._in_part("response.content_part.done", part=part)

    def _placed(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, output_index=len(self._output), **fields)

    def _of_item(self, kind: str, **fields: Any) -> bytes:
        assert self._block is not None, "an item is open"
        id_ = item_id(ITEM_KINDS[self._block.kind], self._drafts.id, len(self._output))
        return self._placed(kind, item_id=id_, **fields)

    def _in_part(self, kind: str, **fields: Any) -> bytes:
        return self._of_item(kind, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = _encode({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
