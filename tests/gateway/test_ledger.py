"""Money: what was spent on models and what each layer saved."""

from dataclasses import replace

import pytest

from gateway.backends.base import Usage
from gateway.backends.prices import Prices
from gateway.ledger import Ledger
from gateway.record import RequestRecord

PRICES = Prices(2.0, 8.0, 0.5)
USAGE = Usage(1_000_000, 500_000, 200_000)
COST = 2.0 + 4.0 - 0.3
RECORD = RequestRecord(
    request_id="r",
    route="/v1/chat/completions",
    tenant="public",
    model="m",
    intent=None,
    outcome="miss",
    end="ok",
    seconds=1.0,
    ttft_s=0.5,
    usage=USAGE,
)


def ledger(told: list[tuple[str, str, float]]) -> Ledger:
    prices = {"m": PRICES, "e": Prices(1.0, 1.0, currency="EUR")}
    return Ledger(prices.get, lambda *amount: told.append(amount))


@pytest.mark.parametrize(
    ("changes", "amounts"),
    [
        ({}, {"spent": COST, "prefix": 0.3}),
        ({"outcome": "bypass"}, {"spent": COST, "prefix": 0.3}),
        ({"outcome": "exact"}, {"exact": COST}),
        ({"outcome": "semantic"}, {"semantic": COST}),
        ({"coalesced": True}, {"flight": COST}),
        ({"usage": None, "end": "error"}, {}),
        ({"model": "unpriced"}, {}),
        ({"model": "unpriced", "stand_in": "m"}, {"spent": COST, "prefix": 0.3}),
    ],
)
def test_amounts_follow_the_record_when_a_model_has_prices(
    changes: dict[str, object], amounts: dict[str, float]
) -> None:
    """A miss costs, a hit saves the same, and an upstream's own cache makes it cheaper."""
    told: list[tuple[str, str, float]] = []
    ledger(told).record(replace(RECORD, **changes))
    assert {kind: pytest.approx(amount) for kind, _, amount in told} == amounts
    assert {currency for _, currency, _ in told} <= {"USD"}


def test_sums_are_kept_apart_when_currencies_differ() -> None:
    """Nothing is added up that cannot be."""
    book = ledger([])
    for record in (RECORD, replace(RECORD, outcome="exact"), replace(RECORD, model="e")):
        book.record(record)
    shown = book.snapshot()
    assert shown["USD"]["spent"] == pytest.approx(COST)
    assert shown["USD"]["saved"] == pytest.approx(COST + 0.3)
    assert set(shown["USD"]["saved_by_layer"]) == {"exact", "prefix"}
    assert shown["EUR"] == {"spent": pytest.approx(1.5), "saved": 0, "saved_by_layer": {}}


def test_cached_tokens_cost_as_much_when_no_price_is_given() -> None:
    """Without a price of their own they are prompt tokens."""
    assert Prices(2.0, 8.0).cost(1_000_000, 0, 1_000_000) == 2.0
