"""Responses that later requests may name: kept by tenant for a time, each with its own turn alone.

A conversation is the chain of its responses; reading one renews the life of all of it.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.errors import BackendUnavailable, NotFound
from semantic_layer import Records, StoreUnavailable

_LEVEL = 1


class KeptResponse(msgspec.Struct, frozen=True):
    """One response, its input, and the responses before it from the first on."""

    before: list[str]
    input: list[dict[str, Any]]
    response: dict[str, Any]

    @property
    def items(self) -> list[dict[str, Any]]:
        """What this turn added to the conversation."""
        return [*self.input, *self.response["output"]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The turns up to a response, and the ids of their responses."""

    turns: list[KeptResponse]
    ids: list[str]

    @property
    def items(self) -> list[dict[str, Any]]:
        """Everything said so far, in order."""
        return [item for turn in self.turns for item in turn.items]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptResponse).decode


class KeptResponses:
    """Keeps responses for ``ttl_s`` after their last use; ``on_failure`` hears of each failure.

    Raises:
        BackendUnavailable: from any method, when the store is slow or down.
    """

    def __init__(
        self, records: Records, ttl_s: float, on_failure: Callable[[], None] = lambda: None
    ) -> None:
        self._records = records
        self.ttl_s = ttl_s
        self._on_failure = on_failure

    async def keep(self, tenant: str, response_id: str, kept: KeptResponse) -> None:
        """Keep one response."""
        data = zlib.compress(_encode(kept), _LEVEL)
        try:
            await self._records.put(tenant, {response_id: data}, self.ttl_s)
        except StoreUnavailable as error:
            raise self._unavailable(error) from error

    async def find(self, tenant: str, response_id: str) -> KeptResponse | None:
        """Return one response."""
        (found,) = await self._get(tenant, [response_id])
        return found

    async def conversation(self, tenant: str, response_id: str) -> Conversation:
        """Return all turns up to a response.

        Raises:
            NotFound: it, or one before it, is not there or no more.
        """
        last = await self.find(tenant, response_id)
        if last is None:
            raise _gone(response_id)
        before = await self._get(tenant, last.before)
        turns = [turn for turn in before if turn is not None]
        if len(turns) < len(before):
            raise _gone(last.before[before.index(None)])
        return Conversation([*turns, last], [*last.before, response_id])

    async def forget(self, tenant: str, response_id: str) -> bool:
        """Forget one response; say whether it was there."""
        try:
            return await self._records.delete(tenant, response_id)
        except StoreUnavailable as error:
            raise self._unavailable(error) from error

    async def _get(self, tenant: str, ids: Sequence[str]) -> list[KeptResponse | None]:
        try:
            values = await self._records.get(tenant, ids, renew_s=self.ttl_s)
        except StoreUnavailable as error:
            raise self._unavailable(error) from error
        return [None if value is None else _read(value) for value in values]

    def _unavailable(self, error: StoreUnavailable) -> BackendUnavailable:
        self._on_failure()
        return BackendUnavailable(f"the store of responses is not available: {error}")


def _read(value: bytes) -> KeptResponse | None:
    """Return a kept response; one of another version is as good as gone."""
    try:
        return _decode(zlib.decompress(value))
    except (zlib.error, msgspec.MsgspecError):
        return None


def _gone(response_id: str) -> NotFound:
    return NotFound(
        f"previous response {response_id!r} is not there, or no more",
        param="previous_response_id",
        code="previous_response_not_found",
    )
