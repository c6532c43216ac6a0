"""Names of models: aliases, patterns, discovery, and who stands in for whom."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest

from gateway.answer import Answer as Whole
from gateway.answer import Assembler
from gateway.backends.base import Event, Work
from gateway.backends.prices import Prices
from gateway.backends.routing import Backends
from gateway.backends.upstream import Retries, UpstreamBackend
from gateway.errors import BackendError, BackendUnavailable, UpstreamStatus
from tests.fakes.upstream import Answer, FakeUpstream, refusal, streamed

FAULT = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}
HELLO = [{"role": "user", "content": "Hello"}]
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream(models=["a", "b", "org/c"]) as fake:
        yield fake


@pytest.fixture
def other() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        fake.script = lambda call: Answer(streamed([f"other:{call.body['model']}"]))
        yield fake


def backend(name: str, url: str, models: Sequence[str] | None, **settings: Any) -> UpstreamBackend:
    return UpstreamBackend(name, url, models, retries=Retries(0), **settings)


async def events_of(backends: Backends, model: str) -> list[Event]:
    found = backends.find(model)
    assert found is not None
    work = Work("r", found[1].model_id, {"model": model, "messages": HELLO}, b"")
    return [event async for event in backends.stream(found[0], work)]


async def answer_of(backends: Backends, model: str) -> Whole:
    assembler = Assembler()
    for event in await events_of(backends, model):
        assembler.add(event)
    assert assembler.answer is not None
    return assembler.answer


@pytest.fixture
async def serving(upstream: FakeUpstream) -> AsyncIterator[Backends]:
    backends = Backends(
        [
            backend("wide", upstream.base_url, ["*"], aliases={"openai/*": "*"}),
            backend("narrow", upstream.base_url, ["a"], aliases={"best": "b", "x-*": "y-*-z"}),
        ]
    )
    yield backends
    await backends.close()


@pytest.mark.parametrize(
    ("asked", "owner", "sent"),
    [
        ("a", "narrow", "a"),
        ("best", "narrow", "b"),
        ("x-1", "wide", "x-1"),
        ("openai/gpt", "wide", "openai/gpt"),
        ("whatever", "wide", "whatever"),
    ],
)
async def test_request_reaches_the_named_model_when_names_overlap(
    upstream: FakeUpstream, serving: Backends, asked: str, owner: str, sent: str
) -> None:
    """A listed name beats a pattern; the upstream sees its own name."""
    found = serving.find(asked)
    assert found is not None
    assert (found[0].name, found[1].model_id) == (owner, asked)
    await events_of(serving, asked)
    assert upstream.calls[-1].body["model"] == sent


async def test_star_is_carried_over_when_an_alias_has_one(upstream: FakeUpstream) -> None:
    """A prefix can be taken off, and put on."""
    backends = Backends(
        [backend("u", upstream.base_url, [], aliases={"openai/*": "*", "x-*": "y-*"})]
    )
    for asked, sent in {"openai/gpt": "gpt", "x-1": "y-1"}.items():
        await events_of(backends, asked)
        assert upstream.calls[-1].body["model"] == sent
    assert backends.find("openai/") is None
    assert backends.find("gpt") is None
    assert backends.models() == []
    await backends.close()


async def test_models_are_discovered_when_none_are_named(upstream: FakeUpstream) -> None:
    """What the upstream lists is served, after it is asked, and follows its list."""
    found = backend("u", upstream.base_url, None, aliases={"best": "b"})
    assert [info.model_id for info in found.models()] == ["best"]
    await found.refresh()
    assert [info.model_id for info in found.models()] == ["a", "b", "org/c", "best"]
    upstream.models = ["d"]
    await found.refresh()
    assert [info.model_id for info in found.models()] == ["d", "best"]
    await found.close()


async def test_list_is_kept_when_the_upstream_goes_away(upstream: FakeUpstream) -> None:
    """An outage is an outage, not a model that never was."""
    found = backend("u", upstream.base_url, None)
    await found.refresh()
    found.replicas[0].url = NOWHERE
    await found.refresh()
    assert [info.model_id for info in found.models()] == ["a", "b", "org/c"]
    await found.close()


async def test_matching_models_are_listed_when_a_pattern_is_named(upstream: FakeUpstream) -> None:
    """Of what the upstream lists, what the settings let in."""
    found = backend("u", upstream.base_url, ["org/*"])
    await found.refresh()
    assert [info.model_id for info in found.models()] == ["org/c"]
    assert found.match("a") is None
    await found.close()


async def test_fingerprint_is_the_targets_when_an_alias_is_asked() -> None:
    """An alias that points elsewhere tomorrow finds none of today's answers."""
    one = backend("u", NOWHERE, [], aliases={"best": "a"}).match("best")
    same = backend("u", NOWHERE, [], aliases={"top": "a"}).match("top")
    later = backend("u", NOWHERE, [], aliases={"best": "b"}).match("best")
    assert one is not None
    assert same is not None
    assert later is not None
    assert one.fingerprint == same.fingerprint != later.fingerprint


async def test_price_is_found_by_name_target_or_star() -> None:
    """The more it names the model, the more it counts."""
    prices = {"*": Prices(1, 1), "b": Prices(2, 2), "best": Prices(3, 3)}
    priced = backend("u", NOWHERE, ["a", "b"], aliases={"best": "b", "top": "b"}, prices=prices)
    found = {info.model_id: info.prices for info in priced.models()}
    assert found == {"a": prices["*"], "b": prices["b"], "best": prices["best"], "top": prices["b"]}


FALLBACKS = {"first": {"a": ["nobody", "second/z", "third"], "*": ["third"]}}


def with_fallbacks(first: str, second: str, **settings: Any) -> Backends:
    return Backends(
        [
            backend("first", first, ["a", "b"]),
            backend("second", second, ["z", "third"]),
            backend("away", NOWHERE, ["w"]),
        ],
        FALLBACKS,
        **settings,
    )


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503, 504, 529])
async def test_another_model_answers_when_the_first_cannot(
    upstream: FakeUpstream, other: FakeUpstream, status: int
) -> None:
    """The next one that is served, in the order of the settings; it is told who answered."""
    upstream.script = lambda call: refusal(status, FAULT)
    told: list[tuple[str, str]] = []
    backends = with_fallbacks(
        upstream.base_url, other.base_url, on_fallback=lambda *pair: told.append(pair)
    )
    answer = await answer_of(backends, "a")
    assert (answer.text, answer.stand_in) == ("other:z", "z")
    assert not answer.is_storable, "it is not the asked model's answer"
    assert told == [("a", "z")]
    assert (await answer_of(backends, "b")).stand_in == "third"
    await backends.close()


async def test_only_allowed_models_stand_in_when_a_tenant_is_kept_to_some(
    upstream: FakeUpstream, other: FakeUpstream
) -> None:
    """An outage gives nobody a model that its rules deny."""
    upstream.script = lambda call: refusal(503, FAULT)
    backends = with_fallbacks(upstream.base_url, other.base_url)
    found = backends.find("a")
    assert found is not None
    work = Work("r", "a", {"model": "a", "messages": HELLO}, b"")
    assembler = Assembler()
    async for event in backends.stream(found[0], work, lambda model: model == "third"):
        assembler.add(event)
    assert assembler.answer is not None
    assert assembler.answer.stand_in == "third"
    with pytest.raises(UpstreamStatus):
        await anext(aiter(backends.stream(found[0], work, lambda _model: False)))
    await backends.close()


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_refusal_is_final_when_the_request_is_at_fault(
    upstream: FakeUpstream, other: FakeUpstream, status: int
) -> None:
    """Another model would refuse it too, or answer something nobody asked for."""
    upstream.script = lambda call: refusal(status, FAULT)
    backends = with_fallbacks(upstream.base_url, other.base_url)
    with pytest.raises(UpstreamStatus):
        await events_of(backends, "a")
    assert other.calls == []
    await backends.close()


async def test_answer_is_broken_when_it_breaks_after_a_byte(
    upstream: FakeUpstream, other: FakeUpstream
) -> None:
    """A second model never goes on where the first stopped."""
    upstream.script = lambda call: Answer(streamed(["a"])[:2], ending="cut")
    backends = with_fallbacks(upstream.base_url, other.base_url)
    with pytest.raises(BackendError):
        await events_of(backends, "a")
    assert other.calls == []
    await backends.close()


async def test_first_failure_is_told_when_all_fail(
    upstream: FakeUpstream, other: FakeUpstream
) -> None:
    """The client asked for the first model, so it hears of that."""
    upstream.script = lambda call: refusal(429, FAULT, retry_after="9")
    other.script = lambda call: refusal(400, FAULT)
    backends = with_fallbacks(upstream.base_url, other.base_url)
    with pytest.raises(UpstreamStatus) as caught:
        await events_of(backends, "a")
    assert (caught.value.status, caught.value.headers) == (429, {"retry-after": "9"})
    assert len(other.calls) == 2
    await backends.close()


async def test_own_failure_is_told_when_nothing_stands_in(other: FakeUpstream) -> None:
    """A backend without fallbacks fails as it does alone."""
    backends = with_fallbacks(NOWHERE, other.base_url)
    assert (await answer_of(backends, "a")).stand_in == "z"
    with pytest.raises(BackendUnavailable):
        await events_of(backends, "w")
    await backends.close()


async def test_headers_are_relayed_when_they_are_allowed(upstream: FakeUpstream) -> None:
    """Static ones always, a client's by name; the rest stays here."""
    relaying = backend(
        "u",
        upstream.base_url,
        ["a"],
        headers={"X-Static": "s"},
        relay_headers=["X-Team", "traceparent"],
    )
    sent = {"x-team": "red", "traceparent": "00-1", "x-secret": "no"}
    work = Work("r", "a", {"model": "a", "messages": HELLO}, b"", sent)
    async for _ in relaying.stream(work):
        pass
    headers = upstream.calls[0].headers
    assert (headers["x-static"], headers["x-team"], headers["traceparent"]) == ("s", "red", "00-1")
    assert "x-secret" not in headers
    [info] = relaying.models()
    assert info.relayed == ("x-team",), "a trace does not change the answer"
    await relaying.close()
