"""``/v1/responses`` in process: what is kept, named by later requests, and deleted."""

from typing import Any

from gateway.backends.base import Delta
from gateway.errors import BackendError
from gateway.kept_responses import KeptResponses
from semantic_layer import MemoryRecords, StoreUnavailable
from tests.fakes.answers import CALLED, SAID, TEXT
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway
from tests.gateway.responses import URL, body, events


async def test_conversation_goes_on_when_its_last_response_is_named() -> None:
    """The chain gives the body, hence the key, of the same history sent whole."""
    async with MemoryGateway(FakeBackend(CALLED)).client() as client:
        first = (await client.post(URL, json=body(instructions="Only here."))).json()
        output = {"type": "function_call_output", "call_id": "call_0", "output": "rain"}
        second = (
            await client.post(URL, json=body(input=[output], previous_response_id=first["id"]))
        ).json()
        chained = await client.post(
            URL, json=body(input="More", previous_response_id=second["id"], stream=True)
        )
        turns = [{"role": "user", "content": "Hi"}, *first["output"], output]
        turns += [*second["output"], {"role": "user", "content": "More"}]
        whole = await client.post(URL, json=body(input=turns))
        as_chat = await client.post(
            "/v1/chat/completions",
            json={
                "model": "m",
                "messages": [
                    {"role": "user", "content": "Hi"},
                    *[_chat_turn(), {"role": "tool", "tool_call_id": "call_0", "content": "rain"}],
                    *[_chat_turn(), {"role": "user", "content": "More"}],
                ],
            },
        )
    assert chained.headers["x-strata-cache"] == "miss"
    assert whole.headers["x-strata-cache"] == as_chat.headers["x-strata-cache"] == "exact"
    assert events(chained)[-1]["response"]["previous_response_id"] == second["id"]


def _chat_turn() -> dict[str, Any]:
    function = {"name": "weather", "arguments": '{"city": "Zürich 🌧"}'}
    call = {"id": "call_0", "type": "function", "function": function}
    return {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}


async def test_response_is_kept_listed_and_deleted() -> None:
    """What was answered can be read again, with all it answers; deleted, it is gone."""
    async with MemoryGateway(FakeBackend(SAID)).client() as client:
        first = (await client.post(URL, json=body(input="One"))).json()
        stream = await client.post(
            URL, json=body(input="Two", previous_response_id=first["id"], stream=True)
        )
        second = events(stream)[-1]["response"]
        assert (await client.get(f"{URL}/{second['id']}")).json() == second
        listed = f"{URL}/{second['id']}/input_items"
        page = (await client.get(listed, params={"order": "asc"})).json()
        texts = [item["content"][0]["text"] for item in page["data"]]
        assert texts == ["One", TEXT, "Two"]
        tail = (await client.get(listed, params={"after": page["data"][-1]["id"]})).json()
        assert [item["id"] for item in tail["data"]] == [i["id"] for i in page["data"][1::-1]]
        short = (await client.get(listed, params={"limit": 1})).json()
        assert short["has_more"]
        assert (await client.delete(f"{URL}/{second['id']}")).json()["deleted"] is True
        for gone in (
            await client.get(f"{URL}/{second['id']}"),
            await client.get(listed),
            await client.delete(f"{URL}/{second['id']}"),
            await client.post(URL, json=body(previous_response_id=second["id"])),
        ):
            assert gone.status_code == 404
        assert (await client.get(f"{URL}/{first['id']}")).status_code == 200


async def test_nothing_is_kept_when_the_caller_says_so() -> None:
    """``store: false`` leaves no trace, and a failed answer neither."""
    records = MemoryRecords()
    backend = FakeBackend([Delta(0, "half")], error=BackendError("engine died"))
    for script, fields in ((FakeBackend(SAID), {"store": False}), (backend, {})):
        for stream in (False, True):
            async with MemoryGateway(script).client(responses=KeptResponses(records, 60)) as client:
                await client.post(URL, json=body(**fields, stream=stream))
    assert not records._values


async def test_item_is_found_by_its_id_when_only_that_is_sent() -> None:
    """Clients that send item_reference instead of an item they were given get the same answer."""
    async with MemoryGateway(FakeBackend(CALLED)).client() as client:
        first = (await client.post(URL, json=body())).json()
        output = {"type": "function_call_output", "call_id": "call_0", "output": "rain"}
        hi = {"role": "user", "content": "Hi"}
        sent = [hi, *first["output"], output]
        named = [hi, *({"type": "item_reference", "id": i["id"]} for i in first["output"]), output]
        whole = await client.post(URL, json=body(input=sent))
        by_name = await client.post(URL, json=body(input=named))
        lost = await client.post(URL, json=body(input=[{"id": "msg_" + "0" * 28}]))
    assert by_name.headers["x-strata-cache"] == "exact"
    assert by_name.json()["output"][1]["call_id"] == whole.json()["output"][1]["call_id"]
    assert lost.status_code == 404
    assert lost.json()["error"]["param"] == "input[0].id"


class _BrokenRecords(MemoryRecords):
    async def put(self, *_: Any) -> None:
        raise StoreUnavailable("down")

    async def get(self, *_: Any, **__: Any) -> list[bytes | None]:
        raise StoreUnavailable("down")


async def test_answer_is_given_when_it_cannot_be_kept() -> None:
    """A store that is down takes no answer away; only what needs it fails, as a 503."""
    kept = KeptResponses(_BrokenRecords(), 60)
    async with MemoryGateway(FakeBackend(SAID)).client(responses=kept) as client:
        assert (await client.post(URL, json=body())).status_code == 200
        assert events(await client.post(URL, json=body(stream=True)))[-1]["response"]
        refused = await client.post(URL, json=body(previous_response_id="resp_1"))
    assert refused.status_code == 503
