"""The Grafana dashboard is what its script writes, and asks for series the gateway has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import dashboard
from deploy.panels import Panel, Query, Row
from gateway.metrics import Metrics
from prefix_layer import EngineStats
from tests.house.programs import accepted

Tree = dict[str, Any]
Series = dict[str, set[str]]

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"\b((?:strata|process)_\w+)(?:\{([^}]*)\})?")
FROM_SCRAPING = {"instance", "job", "le"}


@pytest.fixture(scope="module")
def shown() -> list[Tree]:
    tree: Tree = json.loads(dashboard.PATH.read_text())
    return [panel for panel in tree["panels"] if panel["type"] != "row"]


@pytest.fixture(scope="module")
def series() -> Series:
    return series_of_the_gateway()


def series_of_the_gateway() -> Series:
    """Return the label names of every series the gateway can have, by the series' name."""
    metrics = Metrics()
    metrics.set_engine(EngineStats("", 0, 0, {}, {}, {}, {}, 0, 0, 0))
    found: Series = {}
    for collector, names in metrics._registry._collector_to_names.items():
        if hasattr(collector, "_labelnames"):
            found |= {name: set(collector._labelnames) for name in names}
            continue
        for family in collector.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = set(getattr(family, "_labelnames", ()))
    return found


def assert_asks_for_what_exists(expr: str, legend: str, series: Series) -> None:
    """Every metric, and every label that is matched on, grouped by or shown, exists."""
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:by|on) \(([^)]*)\)", expr))))
    written = set(re.findall(r"\{\{ *(\w+) *\}\}", legend))
    has = set(FROM_SCRAPING)
    for name, matched in NAMED.findall(expr):
        assert name in series, name
        has |= series[name]
        asked = set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)\s*\"", matched))
        assert asked <= series[name] | FROM_SCRAPING, f"{name} has no {asked - series[name]}"
    assert grouped | written <= has, f"{expr}: no {(grouped | written) - has}"


def test_the_dashboard_is_what_its_script_writes() -> None:
    """After a change of a panel or a metric: python -m deploy.dashboard."""
    assert dashboard.PATH.read_text() == dashboard.written()


def test_every_panel_shows_series_the_gateway_has(shown: list[Tree], series: Series) -> None:
    """A renamed metric or label would leave a panel empty without a word."""
    for panel in shown:
        for target in panel["targets"]:
            assert_asks_for_what_exists(target["expr"], target["legendFormat"], series)


def test_every_metric_of_the_gateway_is_shown(shown: list[Tree], series: Series) -> None:
    """Those of the contract, at least, are each in some panel."""
    asked = {
        name
        for panel in shown
        for target in panel["targets"]
        for name, _ in NAMED.findall(target["expr"])
    }
    contract = """requests_total request_seconds_bucket ttft_seconds_bucket lookup_seconds_bucket
        hits_labelled_total wrong_hit_ratio threshold entries store_failures_total breaker_open
        prefix_tokens_total prefix_blocks prefix_evictions_total prefix_bytes engine_batch_tokens
        engine_waiting engine_running tokens_saved_total upstream_requests_total"""
    assert {f"strata_{name}" for name in contract.split()} <= asked & set(series)


def test_prometheus_reads_every_expression(shown: list[Tree], tmp_path: Path) -> None:
    """As rules, with Grafana's variable filled in as Grafana does it."""
    rules = [
        {"record": f"panel:{panel['id']}:{target['refId']}", "expr": target["expr"]}
        for panel in shown
        for target in panel["targets"]
    ]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    accepted("promtool", "check", "rules", str(path))


def test_panels_neither_overlap_nor_leave_the_grid(shown: list[Tree]) -> None:
    """Ids are unique, every panel has a place of its own."""
    tree = json.loads(dashboard.PATH.read_text())
    assert len({panel["id"] for panel in tree["panels"]}) == len(tree["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in tree["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= dashboard.WIDTH, panel["title"]
        taken |= cells
    assert all(panel["description"] or "ALERTS" in str(panel["targets"]) for panel in shown)


def test_grafana_finds_the_source_its_panels_name(shown: list[Tree]) -> None:
    """Source and dashboards are provisioned where Grafana looks for them."""
    provisioning = ROOT / "deploy/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert {panel["datasource"]["uid"] for panel in shown} == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    mounts = dict(m.split(":")[:2] for m in compose["services"]["grafana"]["volumes"])
    (provider,) = yaml.safe_load((provisioning / "dashboards/strata.yml").read_text())["providers"]
    assert provider["options"]["path"] == mounts["./deploy/grafana/dashboards"]


def test_the_script_refuses_when_a_panel_asks_for_no_metric_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mistake is found when the file is written, not in an empty panel."""
    rows = (Row("R", (Panel("P", "short", (Query("strata_nothing_total"),)),)),)
    monkeypatch.setattr(dashboard, "ROWS", rows)
    with pytest.raises(KeyError, match="strata_nothing_total"):
        dashboard.dashboard()


@pytest.mark.parametrize(
    ("expr", "legend"),
    [
        ("sum by (kind) (strata_requests_total)", ""),
        ('strata_requests_total{kind="x"}', ""),
        ("strata_requests_total", "{{kind}}"),
        ("strata_request_total", ""),
    ],
)
def test_a_wrong_name_is_found(series: Series, expr: str, legend: str) -> None:
    """The check above is not blind, wherever the name stands."""
    with pytest.raises(AssertionError):
        assert_asks_for_what_exists(expr, legend, series)
