"""Settings: where they come from, which wins, and what stops the start."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.settings import Settings, SettingsError, describe, load_settings, variables


def test_defaults_serve_embedded_on_loopback() -> None:
    """Without any setting the gateway is local and brings its own parts."""
    settings = load_settings(None, {})
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert (settings.redis.url, settings.qdrant.url) == ("embedded", "embedded")
    assert (settings.local.model, settings.embedder.model) == ("bundled", "bundled")


def test_environment_beats_file_and_command_line_beats_both(tmp_path: Path) -> None:
    """The closer a setting is to the user's hands, the more it weighs."""
    file = tmp_path / "strata.toml"
    file.write_text('port = 1\nhost = "::1"\n[cache]\nttl_s = 5\nmax_temperature = 0.5\n')
    environ = {"STRATA_PORT": "2", "STRATA_CACHE__TTL_S": "9"}
    settings = load_settings(file, environ, {"port": 3, "host": None})
    assert (settings.port, settings.host) == (3, "::1")
    assert (settings.cache.ttl_s, settings.cache.max_temperature) == (9.0, 0.5)


def test_file_is_found_through_the_variable(tmp_path: Path) -> None:
    """``STRATA_CONFIG`` names the file when the command line does not."""
    file = tmp_path / "my.toml"
    file.write_text("port = 77\n")
    assert load_settings(None, {"STRATA_CONFIG": str(file)}).port == 77


@pytest.mark.parametrize(
    ("environ", "named", "allowed"),
    [
        ({"STRATA_PRT": "1"}, "STRATA_PRT", "port"),
        ({"STRATA_LOCAL__SIZE": "1"}, "STRATA_LOCAL__SIZE", "local.block_size"),
        ({"STRATA_PORT": "x"}, "STRATA_PORT", "whole number"),
        ({"STRATA_PORT": "70000"}, "STRATA_PORT", "65535"),
        ({"STRATA_LOCAL__EVICTION": "mru"}, "STRATA_LOCAL__EVICTION", "s3fifo"),
        ({"STRATA_REDIS__URL": "localhost"}, "STRATA_REDIS__URL", "redis://"),
        ({"STRATA_SEMANTIC__WRONG_HIT_BUDGET": "2"}, "WRONG_HIT_BUDGET", "≤ 1"),
        ({"STRATA_CACHE__TTL_S": "nan"}, "STRATA_CACHE__TTL_S", "> 0"),
        ({"STRATA_CACHE__TTL_S": "inf"}, "STRATA_CACHE__TTL_S", "> 0"),
        ({"STRATA_REDIS": "x"}, "STRATA_REDIS", "redis.url"),
        ({"STRATA_PORT__X": "1"}, "port", "allowed"),
        ({"STRATA_UPSTREAMS": "[]"}, "upstreams", "[[upstreams]]"),
        ({"STRATA_LOCAL__PREFIX_CACHING": "maybe"}, "PREFIX_CACHING", "on | off"),
    ],
)
def test_start_stops_with_name_and_allowed_values_when_a_key_is_wrong(
    environ: dict[str, str], named: str, allowed: str
) -> None:
    """A typo is never ignored, and the message says what would be right."""
    with pytest.raises(SettingsError) as caught:
        load_settings(None, environ)
    assert named in str(caught.value)
    assert allowed in str(caught.value)


@pytest.mark.parametrize(
    "text", ["port = ", 'prot = 1\n[redis]\nurl = "embedded"', "[redis]\nhost = 1", "redis = 1"]
)
def test_start_stops_when_the_file_is_wrong(tmp_path: Path, text: str) -> None:
    """A broken file or an unknown key in it is an error, not a default."""
    file = tmp_path / "strata.toml"
    file.write_text(text)
    with pytest.raises(SettingsError):
        load_settings(file, {})


def test_start_stops_when_the_named_file_is_absent(tmp_path: Path) -> None:
    """A file that was asked for by name must be there."""
    with pytest.raises(SettingsError, match="cannot read"):
        load_settings(tmp_path / "none.toml", {})


@pytest.mark.parametrize(("text", "value"), [("on", True), ("false", False), ("0", False)])
def test_switch_takes_the_usual_words(text: str, value: bool) -> None:
    """A boolean from the environment may be written as people write it."""
    assert load_settings(None, {"STRATA_SEMANTIC__ENABLED": text}).semantic.enabled is value


def test_upstream_key_is_read_from_its_own_variable(tmp_path: Path) -> None:
    """The file names the variable, never the key."""
    file = tmp_path / "strata.toml"
    file.write_text(
        '[[upstreams]]\nname = "u"\nbase_url = "http://h/v1"\nmodels = ["m"]\napi_key_env = "K"\n'
    )
    assert load_settings(file, {"K": "sk-secret"}).upstream_keys == {"u": "sk-secret"}
    with pytest.raises(SettingsError, match="K is not set"):
        load_settings(file, {})


def test_upstream_must_be_complete(tmp_path: Path) -> None:
    """A missing key of an upstream is named with its place."""
    file = tmp_path / "strata.toml"
    file.write_text('[[upstreams]]\nname = "u"\nmodels = ["m"]\n')
    with pytest.raises(SettingsError, match=r"upstreams\[0\]\.base_url"):
        load_settings(file, {})


def test_description_masks_secrets() -> None:
    """What `--print-config` shows can be pasted into a bug report."""
    environ = {
        "STRATA_ADMIN_KEY": "adm-secret",
        "STRATA_QDRANT__API_KEY": "qd-secret",
        "STRATA_REDIS__URL": "redis://user:pw-secret@host:6379/0",
    }
    shown = str(describe(load_settings(None, environ)))
    assert "secret" not in shown
    assert "host:6379" in shown


def test_every_variable_is_accepted_with_its_own_default() -> None:
    """The list of variables that the README prints is the list that `load_settings` takes."""
    listed = variables()
    environ = {name: "" if value == "None" else value for name, (value, _) in listed.items()}
    defaults = replace(Settings(), models_dir=Path("/cache/strata/models"))
    assert load_settings(None, {**environ, "XDG_CACHE_HOME": "/cache"}) == defaults
    assert "STRATA_REDIS__URL" in listed


UPSTREAM = '[[upstreams]]\nname = "a"\nmodels = ["m"]\nbase_url = '


@pytest.mark.parametrize(
    ("environ", "text", "key"),
    [
        ({"STRATA_REDIS__URL": "redis://:secret@host:port"}, "", "redis.url"),
        ({"STRATA_QDRANT__URL": "http://host:99999"}, "", "qdrant.url"),
        ({"STRATA_TRACES__ENDPOINT": "http://host:p/v1"}, "", "traces.endpoint"),
        ({}, f'{UPSTREAM}"http://host:p/v1"', "upstreams[0].base_url"),
        ({}, f'{UPSTREAM}"http://h/v1"\nreplicas = ["http://h:p"]', "upstreams[0].replicas[0].url"),
    ],
)
def test_start_stops_when_a_port_is_none(
    tmp_path: Path, environ: dict[str, str], text: str, key: str
) -> None:
    """The setting is named, and no password is shown."""
    file = tmp_path / "strata.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match="is not allowed") as caught:
        load_settings(file, environ)
    assert str(caught.value).startswith(f"{key}: ")
    assert "secret" not in str(caught.value)
