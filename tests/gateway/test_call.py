"""What is recorded and charged of a call, however it ends."""

import asyncio

import pytest

from gateway.auth import Tenant
from gateway.backends.base import Delta, Final, Usage
from gateway.call import CacheReport, Call, Watch
from gateway.errors import BackendError, Forbidden, NotCached, RateLimited
from gateway.quotas import Ticket
from gateway.record import CacheOutcome, RequestRecord
from semantic_layer import CacheControl, Judgement

CALL = Call("r", Tenant.named("acme"), "m", {}, CacheControl(), "/v1/x")
USAGE = Usage(prompt_tokens=9, completion_tokens=3)


class Ledger:
    """Keeps what a watch recorded and what its ticket was charged."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.charged: list[int] = []

    def watch(self, *, has_first_token: bool = True) -> Watch:
        watch = Watch(CALL, self.records.append, has_first_token=has_first_token)
        watch.ticket = Ticket((), self.charged.append)
        return watch


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.mark.parametrize(
    ("outcome", "charged"), [("exact", 0), ("semantic", 0), ("miss", 12), ("bypass", 12)]
)
def test_whole_answer_is_charged_when_a_model_made_it(
    ledger: Ledger, outcome: CacheOutcome, charged: int
) -> None:
    """A hit is free; what was generated costs prompt and completion."""
    with ledger.watch() as watch:
        watch.report = CacheReport(outcome, Judgement())
        watch.completed(USAGE)
    assert ledger.charged == [charged]
    assert [record.end for record in ledger.records] == ["ok"]


def test_only_the_new_part_is_charged_when_some_was_cached(ledger: Ledger) -> None:
    """A list of old and new inputs costs the new ones; vectors have no first token."""
    with ledger.watch(has_first_token=False) as watch:
        watch.completed(Usage(prompt_tokens=9), 4)
    assert ledger.charged == [4]
    assert ledger.records[0].ttft_s is None


def test_deltas_are_charged_when_the_caller_leaves(ledger: Ledger) -> None:
    """An abort before the counts came is not free."""
    with ledger.watch() as watch:
        watch.saw(Delta(text="a"))
        watch.saw(Delta(text="b"))
    assert ledger.charged == [2]
    assert [record.end for record in ledger.records] == ["aborted"]


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (NotCached("no"), "ok"),
        (Forbidden("no"), "rejected"),
        (RateLimited("no", {}), "rejected"),
        (BackendError("no"), "error"),
        (RuntimeError("a bug"), "error"),
        (asyncio.CancelledError(), "aborted"),
    ],
)
def test_end_tells_why_when_a_call_raised(ledger: Ledger, error: BaseException, end: str) -> None:
    """Every call is counted once, by how it ended, and its place is given back."""
    with pytest.raises(type(error)), ledger.watch():
        raise error
    assert [record.end for record in ledger.records] == [end]
    assert ledger.charged == [0]


def test_call_is_recorded_once_when_it_ends_twice(ledger: Ledger) -> None:
    """What was read to its end and is then closed is no abort."""
    with ledger.watch() as watch:
        watch.saw(Final(USAGE))
    watch.aborted()
    assert [record.end for record in ledger.records] == ["ok"]
