"""What the Grafana dashboard shows, row by row: titles, units and the questions to Prometheus."""

from dataclasses import dataclass

HITS = 'outcome=~"exact|semantic"'
ANSWERED = 'outcome=~"exact|semantic|miss"'


@dataclass(frozen=True, slots=True)
class Query:
    """An expression over the gateway's metrics; ``legend`` names its series by their labels."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, or one number where ``is_number``; ``unit`` is a name that Grafana knows.

    ``warn_above`` is the value from which a number is red.
    """

    title: str
    unit: str
    queries: tuple[Query, ...]
    is_number: bool = False
    warn_above: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


def _share(part: str, whole: str) -> str:
    return f"sum(rate({part}[5m])) / sum(rate({whole}[5m]))"


def _rate(metric: str, by: str) -> str:
    return f"sum by ({by}) (rate({metric}[5m]))"


def _quantile(quantile: float, metric: str, by: str) -> str:
    return f"histogram_quantile({quantile}, sum by (le, {by}) (rate({metric}_bucket[5m])))"


def _number(title: str, unit: str, expr: str, warn_above: float | None = None) -> Panel:
    return Panel(title, unit, (Query(expr),), is_number=True, warn_above=warn_above)


def _quantiles(title: str, metric: str, by: str) -> Panel:
    names = ((0.5, "P50"), (0.99, "P99"))
    queries = tuple(Query(_quantile(q, metric, by), f"{{{{{by}}}}} {name}") for q, name in names)
    return Panel(title, "s", queries)


def _rates(title: str, unit: str, metric: str, by: str) -> Panel:
    labels = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return Panel(title, unit, (Query(_rate(metric, by), labels),))


def _levels(title: str, unit: str, expr: str, legend: str) -> Panel:
    return Panel(title, unit, (Query(expr, legend),))


ROWS = (
    Row(
        "At a glance",
        (
            _number("Requests", "reqps", "sum(rate(strata_requests_total[5m]))"),
            _number(
                "Answered from cache",
                "percentunit",
                _share(f"strata_requests_total{{{HITS}}}", f"strata_requests_total{{{ANSWERED}}}"),
            ),
            _number(
                "Prompt tokens not computed",
                "percentunit",
                _share(
                    'strata_prefix_tokens_total{source!="computed"}', "strata_prefix_tokens_total"
                ),
            ),
            _number(
                "Wrong hits, worst intent, at most",
                "percentunit",
                'max(strata_wrong_hit_ratio{bound="high"})',
                0.01,
            ),
            _number("Parts avoided", "short", "sum(strata_breaker_open)", 1),
            _number("Alerts firing", "short", 'count(ALERTS{alertstate="firing"}) or vector(0)', 1),
        ),
    ),
    Row(
        "Traffic",
        (
            _rates("Requests by outcome", "reqps", "strata_requests_total", "outcome"),
            _rates("Requests by route", "reqps", "strata_requests_total", "route"),
            _rates("Requests by model", "reqps", "strata_requests_total", "model"),
            _rates("Requests by tenant", "reqps", "strata_tenant_requests_total", "tenant"),
            _quantiles("Time to first token", "strata_ttft_seconds", "outcome"),
            _quantiles("Whole time of a request", "strata_request_seconds", "outcome"),
            _rates("Tokens no model had to process", "short", "strata_tokens_saved_total", "layer"),
            _rates("Tokens by tenant", "short", "strata_tenant_tokens_total", "tenant, kind"),
        ),
    ),
    Row(
        "Semantic cache",
        (
            _rates("Requests by intent", "reqps", "strata_requests_total", "intent, outcome"),
            _levels(
                "Wrong hits, 95% bounds",
                "percentunit",
                "max by (intent, bound) (strata_wrong_hit_ratio)",
                "{{intent}} {{bound}}",
            ),
            _levels(
                "Score a hit must reach",
                "short",
                "max by (intent) (strata_threshold)",
                "{{intent}}",
            ),
            _levels(
                "Verdicts on served hits in an hour",
                "short",
                "sum by (intent, verdict, source) (increase(strata_hits_labelled_total[1h]))",
                "{{intent}} {{verdict}} by {{source}}",
            ),
            _levels(
                "Answers compared in an hour",
                "short",
                "sum by (source, verdict) (increase(strata_answers_compared_total[1h]))",
                "{{source}} {{verdict}}",
            ),
            _quantiles("Stages of a look-up", "strata_lookup_seconds", "stage"),
        ),
    ),
    Row(
        "Model and prefix cache",
        (
            _rates(
                "Prompt tokens by where their KV came from",
                "short",
                "strata_prefix_tokens_total",
                "source",
            ),
            _levels("KV blocks", "short", "sum by (state) (strata_prefix_blocks)", "{{state}}"),
            _levels("KV memory", "bytes", "sum by (tier) (strata_prefix_bytes)", "{{tier}}"),
            _rates("Blocks evicted", "short", "strata_prefix_evictions_total", "tier"),
            Panel(
                "Blocks lost",
                "short",
                (
                    Query(_rate("strata_prefix_failures_total", "tier"), "{{tier}} failed"),
                    Query(_rate("strata_prefix_broken_total", "tier"), "{{tier}} damaged"),
                ),
            ),
            Panel(
                "Engine",
                "short",
                (
                    Query("sum(strata_engine_running)", "running"),
                    Query("sum(strata_engine_waiting)", "waiting"),
                    Query("max(strata_engine_batch_tokens)", "tokens of the last step"),
                ),
            ),
        ),
    ),
    Row(
        "Stores",
        (
            _levels("Entries kept", "short", "max by (store) (strata_entries)", "{{store}}"),
            _rates("Entries removed", "short", "strata_entries_removed_total", "reason"),
            Panel(
                "Cache parts that fail or are avoided",
                "short",
                (
                    Query(_rate("strata_store_failures_total", "store"), "{{store}} fails"),
                    Query("max by (part) (strata_breaker_open)", "{{part}} avoided"),
                ),
            ),
            _rates("Stale answers made anew", "short", "strata_refreshes_total", "outcome"),
            _rates("Chat messages rewritten", "short", "strata_rewrites_total", "outcome"),
            _levels(
                "Entries embedded anew",
                "short",
                "strata_reembedded_entries and strata_reembedding == 1",
                "{{instance}}",
            ),
            Panel(
                "Answers not kept",
                "short",
                (
                    Query(_rate("strata_private_answers_total", "kind"), "holds {{kind}}"),
                    Query("sum(rate(strata_write_back_dropped_total[5m]))", "queue was full"),
                ),
            ),
        ),
    ),
    Row(
        "Upstreams",
        (
            _rates(
                "Answers by status", "reqps", "strata_upstream_requests_total", "upstream, status"
            ),
            _levels(
                "Requests being answered",
                "short",
                "sum by (upstream, replica) (strata_upstream_in_flight)",
                "{{upstream}} {{replica}}",
            ),
            _levels(
                "Replicas in use",
                "short",
                "min by (upstream, replica) (strata_upstream_replica_up)",
                "{{upstream}} {{replica}}",
            ),
            _rates(
                "Answers of stand-ins", "reqps", "strata_upstream_fallbacks_total", "model, used"
            ),
            _levels(
                "Money in an hour",
                "short",
                "sum by (currency) (increase(strata_money_spent_total[1h]))",
                "spent {{currency}}",
            ),
            _levels(
                "Money saved in an hour",
                "short",
                "sum by (currency, layer) (increase(strata_money_saved_total[1h]))",
                "{{layer}} {{currency}}",
            ),
        ),
    ),
    Row(
        "Process",
        (
            _levels(
                "Memory of the gateway's process",
                "bytes",
                "process_resident_memory_bytes",
                "{{instance}}",
            ),
            _levels(
                "Processor time",
                "percentunit",
                "rate(process_cpu_seconds_total[5m])",
                "{{instance}}",
            ),
        ),
    ),
)
