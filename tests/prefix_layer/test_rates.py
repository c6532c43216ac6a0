"""Rates are found again from times that follow them."""

from pathlib import Path

import pytest

from prefix_layer.client import EngineClient
from prefix_layer.config import EngineConfig
from prefix_layer.rates import Rates, _solve, measure_rates

RATES = Rates(start_s=0.01, token_s=1e-3, pair_s=1e-6, step_s=0.02, step_pair_s=1e-5)


def test_ttft_is_of_what_is_not_cached() -> None:
    """New tokens attend to the cached ones too; one token is always computed."""
    assert RATES.ttft_s(1000, 0) == pytest.approx(0.01 + 1.0 + 0.5)
    assert RATES.ttft_s(1000, 0.5) == pytest.approx(0.01 + 0.5 + 1e-6 * (500 * 500 + 125_000))
    assert RATES.ttft_s(1000, 0.99999) == RATES.ttft_s(1000, 1) == pytest.approx(0.011999, abs=1e-5)
    assert RATES.total_s(1000, 0, 1) == RATES.ttft_s(1000, 0)
    assert RATES.total_s(1000, 0, 11) > RATES.ttft_s(1000, 0) + 10 * 0.03


def test_cost_per_token_and_pair_is_solved_from_two_prefills() -> None:
    """Times that grow less than their lengths, by noise, give no negative cost."""
    times = [(n, RATES.ttft_s(n, 0) - RATES.start_s) for n in (256, 1024)]
    assert _solve(*times) == pytest.approx((RATES.token_s, RATES.pair_s))
    assert _solve((256, 1.0), (1024, 2.0)) == (2 / 1024, 0)
    assert _solve((256, 1.0), (256, 1.0)) == (1 / 256, 0)


async def test_rates_are_positive_when_an_engine_is_measured(tiny_llama: Path) -> None:
    """A context shorter than the usual lengths is enough."""
    engine = EngineClient(EngineConfig(tiny_llama, kv_tokens=128, block_size=4, num_threads=1))
    told: list[str] = []
    await engine.start()
    try:
        rates = await measure_rates(engine, await engine.wait_ready(100), told.append)
        stats = await engine.stats()
    finally:
        await engine.close()
    assert rates.ttft_s(100, 0) > 0
    assert rates.total_s(100, 0.5, 10) > rates.ttft_s(100, 0.5)
    assert stats.tokens_by_source["device"] < 128
    assert told
