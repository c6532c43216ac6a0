"""Money spent on models and saved by each layer. Knows no HTTP and no backend."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from gateway.backends.prices import Prices
from gateway.record import HITS, RequestRecord

PricesOf = Callable[[str], Prices | None]
OnMoney = Callable[[str, str, float], None]
SPENT = "spent"


class Ledger:
    """Adds up the records of one process by the prices that the settings give.

    ``on_money(kind, currency, amount)`` is told each amount as it comes; the kind is ``spent`` or
    the layer that saved it.
    """

    def __init__(self, prices_of: PricesOf, on_money: OnMoney) -> None:
        self._prices_of = prices_of
        self._on_money = on_money
        self._amounts: defaultdict[str, defaultdict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )

    @classmethod
    def without_prices(cls) -> "Ledger":
        """Return a ledger that counts nothing."""
        return cls(lambda _: None, lambda *_: None)

    def record(self, record: RequestRecord) -> None:
        """Count one request that ended."""
        prices = self._prices_of(record.stand_in or record.model)
        if prices is None or record.usage is None:
            return
        for kind, amount in _amounts(record, prices).items():
            if amount > 0:
                self._amounts[prices.currency][kind] += amount
                self._on_money(kind, prices.currency, amount)

    def snapshot(self) -> dict[str, Any]:
        """Return what was spent and saved, by currency."""
        return {
            currency: {
                "spent": amounts.get(SPENT, 0.0),
                "saved": sum(amount for kind, amount in amounts.items() if kind != SPENT),
                "saved_by_layer": {k: amount for k, amount in amounts.items() if k != SPENT},
            }
            for currency, amounts in self._amounts.items()
        }


def _amounts(record: RequestRecord, prices: Prices) -> dict[str, float]:
    usage = record.usage
    assert usage is not None, "a record without usage costs nothing"
    cost = prices.cost(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    if record.outcome in HITS:
        return {record.outcome: cost}
    if record.coalesced:
        return {"flight": cost}
    return {SPENT: cost, "prefix": prices.cached_rebate(usage.cached_tokens)}
