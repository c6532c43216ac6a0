"""Responses kept for later requests: chains, their life, and what breaks them."""

from typing import Any

import pytest

from gateway.errors import BackendUnavailable, NotFound
from gateway.kept_responses import KeptResponse, KeptResponses
from semantic_layer import MemoryRecords, StoreUnavailable
from tests.fakes.backends import FakeBackend, whole
from tests.fakes.gateway import MemoryGateway
from tests.gateway.responses import URL, body, events


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def turn(name: str, *before: str) -> KeptResponse:
    return KeptResponse(list(before), [{"in": name}], {"output": [{"out": name}]})


async def chain(kept: KeptResponses) -> None:
    await kept.keep("acme", "a", turn("a"))
    await kept.keep("acme", "b", turn("b", "a"))
    await kept.keep("acme", "c", turn("c", "a", "b"))


async def test_conversation_is_all_turns_in_order() -> None:
    """Each response holds its own turn; the chain holds them all."""
    kept = KeptResponses(MemoryRecords(), 10)
    await chain(kept)
    found = await kept.conversation("acme", "c")
    assert found.ids == ["a", "b", "c"]
    assert found.items == [{key: name} for name in "abc" for key in ("in", "out")]
    assert (await kept.conversation("acme", "a")).ids == ["a"]


@pytest.mark.parametrize("lost", ["a", "b", "c"])
async def test_conversation_is_not_found_when_a_turn_is_gone(lost: str) -> None:
    """A chain with a hole is refused by the name of the lost response, never cut short."""
    kept = KeptResponses(MemoryRecords(), 10)
    await chain(kept)
    assert await kept.forget("acme", lost)
    with pytest.raises(NotFound, match=f"'{lost}'"):
        await kept.conversation("acme", "c")


async def test_other_tenants_find_nothing() -> None:
    """F01: an id is worth nothing to anybody else."""
    kept = KeptResponses(MemoryRecords(), 10)
    await chain(kept)
    assert await kept.find("other", "a") is None
    assert not await kept.forget("other", "a")
    with pytest.raises(NotFound):
        await kept.conversation("other", "c")


async def test_whole_conversation_lives_on_when_its_end_is_used() -> None:
    """Going on renews the first turn too; what nobody uses ends."""
    clock = Clock()
    kept = KeptResponses(MemoryRecords(clock), 10)
    await chain(kept)
    await kept.keep("acme", "idle", turn("idle"))
    for now in (9.0, 18.0, 27.0):
        clock.now = now
        assert len((await kept.conversation("acme", "c")).turns) == 3
    assert await kept.find("acme", "idle") is None


async def test_record_of_another_version_is_as_good_as_gone() -> None:
    """Bytes we cannot read are no answer and no fault of the caller."""
    records = MemoryRecords()
    await records.put("acme", {"a": b"junk"}, 10)
    assert await KeptResponses(records, 10).find("acme", "a") is None


class _Down(MemoryRecords):
    async def put(self, *_: Any) -> None:
        raise StoreUnavailable("down")

    async def get(self, *_: Any, **__: Any) -> list[bytes | None]:
        raise StoreUnavailable("down")

    async def delete(self, *_: Any) -> bool:
        raise StoreUnavailable("down")


async def test_store_that_is_down_is_said_to_be() -> None:
    """Every use of it is one error the API can tell, a 503."""
    kept = KeptResponses(_Down(), 10)
    for use in (
        kept.keep("acme", "a", turn("a")),
        kept.find("acme", "a"),
        kept.conversation("acme", "a"),
        kept.forget("acme", "a"),
    ):
        with pytest.raises(BackendUnavailable):
            await use


async def test_response_says_that_it_is_not_stored_when_the_store_is_down() -> None:
    """The answer is given all the same, streamed or whole; each loss is counted."""
    failures: list[int] = []
    kept = KeptResponses(_Down(), 10, lambda: failures.append(1))
    gateway = MemoryGateway(FakeBackend(whole("x")))
    async with gateway.client(responses=kept) as client:
        answer = (await client.post(URL, json=body())).json()
        last = events(await client.post(URL, json=body(stream=True)))[-1]["response"]
        assert (await client.get(f"{URL}/{answer['id']}")).status_code == 503
    assert [answer["status"], last["status"]] == ["completed", "completed"]
    assert [answer["store"], last["store"]] == [False, False]
    assert len(failures) == 3
    async with gateway.client() as client:
        assert (await client.post(URL, json=body())).json()["store"] is True
