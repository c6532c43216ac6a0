"""The Kubernetes manifests and the systemd unit agree with their schemas and with the code."""

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gateway.app import create_app
from gateway.settings import load_settings
from tests.house.programs import accepted

Tree = dict[str, Any]

ROOT = Path(__file__).parents[2]
MANIFESTS: list[Tree] = list(yaml.safe_load_all((ROOT / "deploy/kubernetes.yml").read_text()))
UNIT = ROOT / "deploy/strata.service"
CLOSING_S = 5  # the parts, once requests have ended; Ctrl-C alone may take no longer


@pytest.fixture(scope="module")
def by_kind() -> dict[str, Tree]:
    return {tree["kind"]: tree for tree in MANIFESTS}


@pytest.fixture(scope="module")
def pod(by_kind: dict[str, Tree]) -> Tree:
    spec: Tree = by_kind["StatefulSet"]["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="module")
def gateway(pod: Tree) -> Tree:
    (container,) = pod["containers"]
    return dict(container)


@pytest.fixture(scope="module")
def unit() -> dict[str, list[str]]:
    """Each setting of the unit's service with its values in order."""
    found: dict[str, list[str]] = {}
    for key, value in re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE):
        found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("tree", MANIFESTS, ids=lambda tree: tree["kind"])
@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_a_manifest_is_accepted_when_its_schema_is_strict(tree: Tree, version: str) -> None:
    """Old and new Kubernetes know every field."""
    kubernetes_validate.validate(tree, version, strict=True)


def test_a_manifest_is_refused_when_a_field_is_mistyped() -> None:
    """The check above is not blind."""
    wrong = {"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


def test_settings_are_accepted_when_the_pod_starts(
    by_kind: dict[str, Tree], gateway: Tree, pod: Tree
) -> None:
    """With the image's own; the port, the data folder and the keys are where the pod has them."""
    dockerfile = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    image = dict(re.findall(r"\b(STRATA_\w+)=(\S+)", dockerfile))
    given = by_kind["ConfigMap"]["data"] | {each["name"]: "secret" for each in gateway["env"]}
    settings = load_settings(None, image | given)
    assert settings.admin_key == "secret"
    assert settings.port == gateway["ports"][0]["containerPort"]
    mounts = {each["mountPath"]: each["name"] for each in gateway["volumeMounts"]}
    (claim,) = by_kind["StatefulSet"]["spec"]["volumeClaimTemplates"]
    assert mounts[str(settings.data_dir)] == claim["metadata"]["name"]
    assert settings.api_keys_file is not None
    (secrets,) = pod["volumes"]
    assert mounts[str(settings.api_keys_file.parent)] == secrets["name"]
    assert secrets["secret"]["items"][0]["path"] == settings.api_keys_file.name
    assert pod["enableServiceLinks"] is False, "STRATA_PORT=tcp://… would be no port"


def test_names_agree_when_parts_refer_to_each_other(by_kind: dict[str, Tree], pod: Tree) -> None:
    """Service, pods and the image of the stack."""
    stateful = by_kind["StatefulSet"]["spec"]
    labels = stateful["template"]["metadata"]["labels"]
    assert stateful["selector"]["matchLabels"] == labels
    assert by_kind["Service"]["spec"]["selector"] == labels
    assert stateful["serviceName"] == by_kind["Service"]["metadata"]["name"]
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert pod["containers"][0]["image"] == compose["x-gateway"]["image"]
    uid = re.findall(r"useradd --uid (\d+)", (ROOT / "Dockerfile").read_text())
    assert [str(pod["securityContext"]["runAsUser"])] == uid


def test_probes_and_scrapes_ask_routes_that_exist(by_kind: dict[str, Tree], gateway: Tree) -> None:
    """A wrong path would restart a healthy gateway for ever."""
    routes = {route.path for route in create_app(load_settings(None, {})).routes}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert gateway[probe]["httpGet"]["path"] in routes
        assert gateway[probe]["httpGet"]["port"] == gateway["ports"][0]["name"]
    scrape = by_kind["Service"]["metadata"]["annotations"]
    assert scrape["prometheus.io/path"] in routes
    assert scrape["prometheus.io/port"] == str(gateway["ports"][0]["containerPort"])


def test_stopping_has_the_time_it_needs(
    by_kind: dict[str, Tree], pod: Tree, gateway: Tree, unit: dict[str, list[str]]
) -> None:
    """Nobody kills a gateway that is still ending requests and closing its stores."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    before_s = gateway["lifecycle"]["preStop"]["sleep"]["seconds"]
    (unit_drain,) = (line for line in unit["Environment"] if "DRAIN_S" in line)
    graces = {
        "pod": (
            by_kind["ConfigMap"]["data"]["STRATA_DRAIN_S"],
            pod["terminationGracePeriodSeconds"] - before_s,
        ),
        "unit": (unit_drain.partition("=")[2], float(unit["TimeoutStopSec"][0])),
        "compose": (
            compose["x-settings"]["STRATA_DRAIN_S"],
            float(compose["x-gateway"]["stop_grace_period"].removesuffix("s")),
        ),
    }
    usual_s = load_settings(None, {}).drain_s
    for kind, (drain_s, grace_s) in graces.items():
        assert float(drain_s) == usual_s, kind
        assert grace_s >= float(drain_s) + CLOSING_S, kind
    assert unit["KillMode"] == ["mixed"]


def test_settings_are_accepted_when_the_service_starts(unit: dict[str, list[str]]) -> None:
    """Its folders are those systemd makes for it."""
    given = dict(pair.split("=", 1) for line in unit["Environment"] for pair in line.split())
    cache = given.pop("XDG_CACHE_HOME")
    settings = load_settings(None, given)
    assert str(settings.data_dir) == f"/var/lib/{unit['StateDirectory'][0]}"
    assert cache == f"/var/cache/{unit['CacheDirectory'][0]}"
    assert unit["ExecStart"][0].endswith("/strata serve")


def test_the_unit_is_accepted_when_systemd_reads_it(
    unit: dict[str, list[str]], tmp_path: Path
) -> None:
    """With a program that is there."""
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace(unit["ExecStart"][0], "/bin/true"))
    accepted("systemd-analyze", "verify", "--man=no", str(path))
