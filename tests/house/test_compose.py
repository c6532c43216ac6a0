"""The stack's files agree with each other and with the code."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.app import create_app
from gateway.metrics import Metrics
from gateway.settings import load_settings

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy/grafana/dashboards/strata.json"
PORTS = {"gateway": 8000, "gateway-gpu": 8000, "redis": 6379, "qdrant": 6333}

Tree = dict[str, Any]


@pytest.fixture(scope="module")
def compose() -> Tree:
    tree: Tree = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return tree


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (ROOT / "Dockerfile").read_text().replace("\\\n", " ")


@pytest.fixture(scope="module")
def image_environment(dockerfile: str) -> dict[str, str]:
    return dict(re.findall(r"\b(STRATA_\w+)=(\S+)", dockerfile))


def needed(program: str) -> str:
    """Return the program's path; the test is left out, by name, where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


@pytest.mark.parametrize("profile", [[], ["--profile", "gpu"]], ids=["default", "gpu"])
def test_the_stack_is_accepted_when_compose_reads_it(profile: list[str]) -> None:
    """Compose itself finds no fault, in any profile."""
    command = [needed("docker-compose"), *profile, "config", "--quiet"]
    result = subprocess.run(
        command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr


def test_the_parts_of_the_design_are_there_when_no_profile_is_chosen(compose: Tree) -> None:
    """Gateway, stores and monitoring by default; the GPU engine only when asked for."""
    default = {name for name, service in compose["services"].items() if "profiles" not in service}
    assert default == {"gateway", "redis", "qdrant", "prometheus", "grafana"}
    assert compose["services"]["gateway-gpu"]["profiles"] == ["gpu"]


@pytest.mark.parametrize("name", ["gateway", "gateway-gpu"])
def test_settings_are_accepted_when_a_container_starts(
    compose: Tree, image_environment: dict[str, str], name: str
) -> None:
    """Every variable of image and stack is a setting, and points to a part of the stack."""
    service = compose["services"][name]
    given = {key: re.sub(r"\$\{\w+:-(.*)\}", r"\1", v) for key, v in service["environment"].items()}
    settings = load_settings(None, image_environment | given)
    assert settings.api_keys_file is not None, "the container listens on all addresses"
    assert settings.port == PORTS[name]
    for url in (settings.redis.url, settings.qdrant.url):
        host, port = re.findall(r"//([\w-]+):(\d+)", url)[0]
        assert PORTS[host] == int(port)
        assert host in service["depends_on"]
        assert "healthcheck" in compose["services"][host]


def test_every_published_port_is_one_a_service_listens_on(
    compose: Tree, image_environment: dict[str, str], dockerfile: str
) -> None:
    """And nothing but this machine reaches it unless the operator says so."""
    assert f"EXPOSE {image_environment['STRATA_PORT']}" in dockerfile
    listening = {**PORTS, "prometheus": 9090, "grafana": 3000}
    for name, service in compose["services"].items():
        for published in service.get("ports", []):
            assert published.rpartition(":")[2] == str(listening[name])
            assert "127.0.0.1" in published


def test_every_mounted_file_and_volume_is_there(compose: Tree) -> None:
    """A mistyped path would be mounted as an empty folder."""
    used = set()
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            source = mount.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), source
            else:
                used.add(source)
    assert used == set(compose["volumes"])


def test_data_survives_when_a_container_is_replaced(
    compose: Tree, image_environment: dict[str, str]
) -> None:
    """The folder the gateway keeps its data and keys in is a volume."""
    mounts = dict(m.split(":")[:2] for m in compose["services"]["gateway"]["volumes"])
    assert image_environment["STRATA_DATA_DIR"] in mounts.values()
    assert image_environment["STRATA_API_KEYS_FILE"].startswith("/data/")


def test_the_health_check_asks_a_route_that_exists(dockerfile: str) -> None:
    """In the image as in the app."""
    (path,) = re.findall(r"127\.0\.0\.1:8000(/[\w/]+)", dockerfile)
    assert path == "/health/live"
    app = create_app(load_settings(None, {}))
    assert path in {route.path for route in app.routes}


def test_the_image_runs_as_a_user_and_copies_what_exists(dockerfile: str) -> None:
    """No root at run time, no missing source, nothing shut out by .dockerignore."""
    last_stage = dockerfile.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!root)\w+$", last_stage, re.MULTILINE)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in allowed


def test_the_scrape_configuration_is_accepted_when_prometheus_reads_it(compose: Tree) -> None:
    """And it names the gateways of the stack."""
    path = ROOT / "deploy/prometheus.yml"
    (job,) = yaml.safe_load(path.read_text())["scrape_configs"]
    (source,) = job["dns_sd_configs"]
    assert set(source["names"]) <= set(compose["services"])
    assert source["port"] == PORTS["gateway"]
    command = [needed("promtool"), "check", "config", str(path)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_panel_shows_a_metric_the_gateway_has() -> None:
    """A renamed metric would leave a panel empty without a word."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = " ".join(target["expr"] for panel in panels for target in panel["targets"])
    shown = set(re.findall(r"\bstrata_\w+", expressions))
    source = Path(ROOT / "gateway/metrics.py").read_text()
    known = set(re.findall(r"# TYPE (\w+)", Metrics().render().decode()))
    known |= set(re.findall(r'"(strata_\w+)"', source))
    for name in shown:
        assert name in known or re.sub(r"_(total|bucket)$", "", name) in known, name


def test_grafana_finds_the_source_its_panels_name(compose: Tree) -> None:
    """Source and dashboards are provisioned where Grafana looks for them."""
    provisioning = ROOT / "deploy/grafana/provisioning"
    sources = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    uids = {panel["datasource"]["uid"] for panel in panels}
    assert uids == {source["uid"] for source in sources["datasources"]}
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"
    provider = yaml.safe_load((provisioning / "dashboards/strata.yml").read_text())["providers"][0]
    mounts = dict(m.split(":")[:2] for m in compose["services"]["grafana"]["volumes"])
    assert provider["options"]["path"] == mounts["./deploy/grafana/dashboards"]
