"""Alert rules: their metrics exist, they fire where they should, Prometheus itself runs them."""

import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
import yaml

from gateway.app import create_app
from gateway.metrics import CONTENT_TYPE, Metrics
from gateway.record import CacheOutcome, End
from gateway.settings import load_settings
from tests.contract.client import until
from tests.contract.stack import free_port
from tests.gateway.test_stats import record
from tests.house.programs import accepted, needed
from tests.house.test_dashboard import assert_asks_for_what_exists, series_of_the_gateway

Tree = dict[str, Any]

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/alerts.yml"
CASES = [ROOT / "tests/house/alerts.yml", ROOT / "tests/house/alerts_days.yml"]


@pytest.fixture(scope="module")
def rules() -> list[Tree]:
    return [
        rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
    ]


@pytest.fixture(scope="module")
def alerts(rules: list[Tree]) -> dict[str, Tree]:
    return {rule["alert"]: rule for rule in rules if "alert" in rule}


def test_every_rule_asks_for_series_the_gateway_has(rules: list[Tree]) -> None:
    """A renamed metric or label would silence an alert without a word."""
    series = series_of_the_gateway()
    for rule in rules:
        expr = re.sub(r"\s+", " ", rule["expr"])
        assert_asks_for_what_exists(expr, "", series)
        outcomes = re.findall(r'outcome=~?"([\w|]+)"', expr)
        known = {*get_args(CacheOutcome), *get_args(End)}
        assert {each for found in outcomes for each in found.split("|")} <= known


def test_every_alert_says_how_bad_it_is_and_what_to_do(alerts: dict[str, Tree]) -> None:
    """And has a case in which it fires."""
    fired = set()
    for path in CASES:
        for case in yaml.safe_load(path.read_text())["tests"]:
            fired |= {t["alertname"] for t in case["alert_rule_test"] if t.get("exp_alerts")}
    assert fired == set(alerts)
    for name, rule in alerts.items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert set(rule["annotations"]) == {"summary", "action"}, name


def test_the_budget_of_wrong_hits_is_the_setting_s(alerts: dict[str, Tree]) -> None:
    """An alert at another limit than the gateway's own would contradict it."""
    budget = load_settings(None, {}).semantic.wrong_hit_budget
    for name in ("StrataWrongHitsOverBudget", "StrataWrongHitsUnproven"):
        assert alerts[name]["expr"].endswith(f"> {budget}")


def test_settings_and_routes_that_alerts_name_exist(alerts: dict[str, Tree]) -> None:
    """Advice that names what is not there is worse than none."""
    settings = load_settings(None, {})
    text = " ".join(rule["annotations"]["action"] for rule in alerts.values())
    named = re.findall(r"\b(local|cache|semantic|redis|qdrant)\.(\w+)", text)
    assert named
    for section, key in named:
        assert hasattr(getattr(settings, section), key), f"{section}.{key}"
    routes = {route.path for route in create_app(settings).routes}
    assert set(re.findall(r"/(?:admin|health)[\w/]+", text)) <= routes


def test_prometheus_accepts_the_rules() -> None:
    """Its own linter has nothing to say."""
    accepted("promtool", "check", "rules", "--lint=all", "--lint-fatal", str(RULES))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_alerts_fire_when_their_condition_holds(path: Path) -> None:
    """And are silent before, beside and below it."""
    accepted("promtool", "test", "rules", str(path))


@pytest.fixture
def scraped() -> Iterator[str]:
    """The address of a gateway's metrics after one hit, with one breaker open."""
    metrics = Metrics()
    metrics.record(record(outcome="exact"))
    metrics.set_breaker("redis", is_open=True)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = metrics.render()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def prometheus(scraped: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A Prometheus with the stack's configuration, but this target and a faster clock."""
    program = needed("prometheus")
    config = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "100ms", "evaluation_interval": "100ms"}
    config["rule_files"] = [str(ROOT / "deploy" / name) for name in config["rule_files"]]
    del config["scrape_configs"][0]["dns_sd_configs"]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [scraped]}]
    path = tmp_path / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    options = {
        "config.file": path,
        "storage.tsdb.path": tmp_path / "data",
        "web.listen-address": address,
    }
    command = [program, *(f"--{key}={value}" for key, value in options.items())]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
        httpx.Client(base_url=f"http://{address}/api/v1/", trust_env=False) as client,
    ):
        yield client
        process.terminate()


def test_prometheus_scrapes_the_gateway_and_sees_its_breaker(prometheus: httpx.Client) -> None:
    """A real Prometheus reads the exposition, evaluates every rule and raises what it should."""

    def ask(path: str, **parameters: str) -> Any:
        try:
            answer = prometheus.get(path, params=parameters).json()
        except (httpx.HTTPError, ValueError):
            return None
        return answer.get("data")

    def pending() -> Any:
        """The rules, once only the breaker's waits: StrataDown does too until the first scrape."""
        groups = (ask("rules") or {}).get("groups", [])
        found = {rule["name"]: rule for group in groups for rule in group["rules"]}
        waiting = [name for name, rule in found.items() if rule.get("state") == "pending"]
        return found if waiting == ["StrataBreakerOpen"] else None

    found = until(pending, what="the alert on an open breaker, alone")
    assert {rule["health"] for rule in found.values()} == {"ok"}
    (target,) = ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    (hit,) = ask("query", query='sum(strata_requests_total{outcome="exact"})')["result"]
    assert hit["value"][1] == "1"
