"""Real SDKs, unchanged, over a local model and an upstream; the same answers from the cache."""

import pytest

from tests.clients.conftest import LOCAL, REMOTE, Served
from tests.clients.face import ModelClient
from tests.clients.scripts import CITY, RESULT
from tests.contract.client import until

Named = tuple[str, ModelClient]

pytestmark = pytest.mark.filterwarnings("default")  # warnings of clients are not ours to mend
models = pytest.mark.parametrize("model", [LOCAL, REMOTE], ids=["local", "upstream"])


@models
def test_answer_is_the_same_whole_streamed_and_cached(
    served: Served, named_client: Named, model: str
) -> None:
    """What a client gets does not tell how it was made."""
    name, client = named_client
    text = f"Name a fruit for {name}."
    before = served.hits()
    first = client.ask(model, text)
    assert first
    assert model == LOCAL or first == f"Grüße 🌍 {text}"
    assert client.ask(model, text) == first
    assert "".join(client.stream(model, text)) == first
    assert served.hits() == before + 2
    fresh = client.stream(model, text + " Be brief.")
    assert len(fresh) > 1
    assert "".join(fresh) == client.ask(model, text + " Be brief.")


@models
def test_tool_is_called_and_its_result_is_used(
    served: Served, named_client: Named, model: str
) -> None:
    """The round trip of a tool, then the same from the cache."""
    name, client = named_client
    text = f"What is the weather in Zürich, asks {name}?"
    call, answer = client.call_tool(model, text)
    assert call[0] == "weather"
    assert isinstance(call[1]["city"], str)
    assert answer
    if model == REMOTE:
        assert (call[1], answer) == ({"city": "Zürich"}, RESULT)
    before = served.hits()
    assert client.call_tool(model, text) == (call, answer)
    assert served.hits() > before


@models
def test_answer_has_the_form_that_was_asked_for(
    served: Served, named_client: Named, model: str
) -> None:
    """The client's own parser is content, first and from the cache."""
    name, client = named_client
    text = f"Describe Paris for {name}."
    made = client.structured(model, text)
    assert isinstance(made["city"], str)
    assert isinstance(made["population"], int)
    assert model == LOCAL or made == CITY
    before = served.hits()
    assert client.structured(model, text) == made
    assert served.hits() == before + 1


def test_error_is_the_clients_own_when_a_request_fails(named_client: Named) -> None:
    """Unknown models, refusals of an upstream and prompts past the context."""
    _, client = named_client
    assert client.error("no-such-model", "Hi.")[0] == 404
    status, message = client.error(REMOTE, "Please refuse this.")
    assert status == 400
    assert "no such luck" in message
    status, message = client.error(LOCAL, "pebble " * 9000)
    assert status == 400
    assert "8192" in message


@models
def test_work_ends_when_a_client_leaves(served: Served, named_client: Named, model: str) -> None:
    """An abort reaches the upstream and the engine, and nothing of it is served later."""
    name, client = named_client
    text = f"Tell an endless story about rivers to {name}."
    assert client.leave(model, text)
    if model == REMOTE:
        assert served.upstream.left_early.acquire(timeout=30)
        return

    def idle() -> bool:
        stats = served.stack.client.http.get("/admin/prefix/stats").json()
        return stats["running"] == 0 and stats["waiting"] == 0

    until(idle, limit_s=30, what="the engine is idle")
