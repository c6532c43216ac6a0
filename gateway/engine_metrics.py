"""The engine's readings as series of the Prometheus registry."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from prefix_layer import EngineStats


class EngineCollector(Collector):
    """Turns the engine's own readings into series when they are scraped."""

    def __init__(self) -> None:
        self.stats: EngineStats | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the series of the last readings; none before the first."""
        stats = self.stats
        if stats is None:
            return
        counters = {
            ("strata_prefix_tokens", "Prompt tokens by their KV's source", "source"): (
                stats.tokens_by_source
            ),
            ("strata_prefix_evictions", "Blocks pushed out of a tier", "tier"): (
                stats.evictions_by_tier
            ),
            ("strata_prefix_failures", "Blocks a tier could not keep or give", "tier"): (
                stats.failures_by_tier
            ),
            ("strata_prefix_broken", "KV files that were damaged or foreign", "tier"): (
                stats.broken_by_tier
            ),
        }
        for (name, text, label), values in counters.items():
            yield _filled(CounterMetricFamily(name, text, labels=[label]), values)
        gauges = {
            ("strata_prefix_blocks", "KV blocks by state", "state"): stats.blocks_by_state,
            ("strata_prefix_bytes", "KV bytes by tier", "tier"): stats.bytes_by_tier,
        }
        for (name, text, label), values in gauges.items():
            yield _filled(GaugeMetricFamily(name, text, labels=[label]), values)
        batch = "Tokens of the engine's last step"
        yield GaugeMetricFamily("strata_engine_batch_tokens", batch, stats.batch_tokens)
        yield GaugeMetricFamily("strata_engine_waiting", "Sequences waiting", stats.num_waiting)
        yield GaugeMetricFamily("strata_engine_running", "Sequences running", stats.num_running)


def _filled(
    family: CounterMetricFamily | GaugeMetricFamily, values: Mapping[str, int]
) -> CounterMetricFamily | GaugeMetricFamily:
    for label, value in values.items():
        family.add_metric([label], value)
    return family
