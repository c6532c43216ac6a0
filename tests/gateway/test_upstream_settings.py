"""``[[upstreams]]``: every key, and what stops the start."""

from pathlib import Path
from typing import Any

import pytest

from gateway.settings import SettingsError, UpstreamSettings, describe, load_settings
from gateway.upstream_settings import PriceSettings, ReplicaSettings

WHOLE = """
[[upstreams]]
name = "openai"
base_url = "https://api.example.com/v1"
models = ["gpt-*", "o3"]
aliases = {best = "o3", "openai/*" = "*"}
api_key_env = "KEY"
replicas = [
  "http://10.0.0.6:8000/v1",
  {url = "http://10.0.0.7:8000/v1", weight = 2, drained = true},
]
weight = 0.5
policy = "least_busy"
timeout_s = 30
retries = 0
fallbacks = {o3 = ["vllm/qwen", "o4"], "*" = ["o4"]}
relay_headers = ["OpenAI-Organization"]
headers = {x-team = "red", x-secret = "$SECRET"}
proxy = "http://user:pw@proxy:3128"

[upstreams.prices."*"]
input_per_million = 2
output_per_million = 8.5
currency = "EUR"
"""


def load(tmp_path: Path, text: str, **environ: str) -> list[UpstreamSettings]:
    file = tmp_path / "strata.toml"
    file.write_text(text)
    return load_settings(file, environ).upstreams


def upstream(**lines: Any) -> str:
    keys = {"name": '"u"', "base_url": '"https://h.example.com/v1"', **lines}
    return "[[upstreams]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())


def test_every_key_is_read_when_it_is_set(tmp_path: Path) -> None:
    """Tables, lists and shorthands become settings."""
    [read] = load(tmp_path, WHOLE, KEY="k", SECRET="s3cret")
    assert read.replicas == [
        ReplicaSettings("http://10.0.0.6:8000/v1"),
        ReplicaSettings("http://10.0.0.7:8000/v1", 2.0, drained=True),
    ]
    assert read.prices == {"*": PriceSettings(2.0, 8.5, currency="EUR")}
    assert read.headers == {"x-team": "red", "x-secret": "s3cret"}
    assert read.fallbacks["o3"] == ["vllm/qwen", "o4"]
    assert (read.policy, read.retries, read.weight) == ("least_busy", 0, 0.5)


def test_secrets_are_masked_when_settings_are_printed(tmp_path: Path) -> None:
    """Header values and the proxy's password stay out of bug reports."""
    file = tmp_path / "strata.toml"
    file.write_text(WHOLE)
    shown = str(describe(load_settings(file, {"KEY": "k", "SECRET": "s3cret"})))
    assert "s3cret" not in shown
    assert "pw" not in shown
    assert "proxy:3128" in shown


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ({"policy": '"random"'}, "affinity | round_robin | least_busy"),
        ({"retries": "-1"}, "≥ 0"),
        ({"weight": "0"}, "> 0"),
        ({"models": '"m"'}, "a list of text"),
        ({"aliases": "3"}, "a table"),
        ({"replicas": '["ftp://x"]'}, "replicas[0].url"),
        ({"replicas": "[{weight = 2}]"}, "replicas[0].url"),
        ({"replicas": '[{url = "http://x", wait = 2}]'}, "wait"),
        ({"prices": "{m = {input_per_million = 1}}"}, "output_per_million"),
        (
            {"prices": '{m = {input_per_million = 1, output_per_million = 1, currency = "$"}}'},
            "three capitals",
        ),
        ({"headers": '{a = "$UNSET"}'}, "$UNSET is not set"),
        ({"headers": '{"a b" = "c"}'}, "headers"),
        ({"proxy": '"socks5://x"'}, "not http(s)://"),
        ({"relay_headers": '["authorization"]'}, "authorization"),
        ({"relay_headers": '["Host"]'}, "Host"),
        ({"colour": '"red"'}, "colour"),
    ],
)
def test_start_stops_when_an_upstream_is_wrong(
    tmp_path: Path, lines: dict[str, str], named: str
) -> None:
    """The message names the key or says what is allowed."""
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, upstream(**lines))
    assert named in str(caught.value)


def test_start_stops_when_two_upstreams_have_one_name(tmp_path: Path) -> None:
    """Metrics, health and admin routes know an upstream by its name."""
    with pytest.raises(SettingsError, match=r"upstreams\[1\]\.name"):
        load(tmp_path, f"{upstream()}\n{upstream()}")


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://h.example.com/v1", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://h.example.com/v1", {"https_proxy": "http://p:1"}, "http://p:1"),
        ("https://h.example.com/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://h.example.com/v1", {"HTTP_PROXY": "http://p:1"}, "http://p:1"),
        ("http://127.0.0.1:8001/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://localhost/v1", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://h.example.com/v1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        (
            "https://h.example.com/v1",
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".example.com"},
            None,
        ),
        (
            "https://h.example.com/v1",
            {"HTTPS_PROXY": "http://p:1", "no_proxy": "a, example.com"},
            None,
        ),
        (
            "https://h.example.com/v1",
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"},
            "http://p:1",
        ),
        ("http://h:81/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:80"}, "http://p:1"),
        ("http://h:81/v1", {"HTTP_PROXY": "http://p:1", "NO_PROXY": "h:81"}, None),
    ],
)
def test_proxy_is_taken_from_the_environment_when_none_is_set(
    tmp_path: Path, url: str, environ: dict[str, str], proxy: str | None
) -> None:
    """As other clients read it; a setting comes first, and ``none`` switches it off."""
    text = upstream(base_url=f'"{url}"')
    assert load(tmp_path, text, **environ)[0].proxy == proxy
    assert load(tmp_path, f'{text}\nproxy = "none"', **environ)[0].proxy is None
    assert load(tmp_path, f'{text}\nproxy = "http://own:2"', **environ)[0].proxy == "http://own:2"
