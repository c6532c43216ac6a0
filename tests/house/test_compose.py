"""The stack's files agree with each other and with the code."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.app import create_app
from gateway.settings import load_settings
from tests.house.programs import accepted, needed

ROOT = Path(__file__).parents[2]
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
    accepted("promtool", "check", "config", str(path))


def test_prometheus_gets_the_rules_its_configuration_names(compose: Tree) -> None:
    """Beside the configuration, as on disk."""
    mounts = dict(m.split(":")[:2] for m in compose["services"]["prometheus"]["volumes"])
    for name in yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())["rule_files"]:
        assert mounts[f"./deploy/{name}"] == f"/etc/prometheus/{name}"
