"""The command line: help everywhere, one clear line on bad input, figures as JSON."""

import json
import os
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.bundled import BundledModels
from gateway.cli import COMMANDS, strata
from gateway.settings import load_settings, variables

SUBCOMMANDS = [
    *([name] for name in COMMANDS),
    *(["models", name] for name in ("prepare", "list", "verify")),
    *(["keys", name] for name in ("add", "list", "revoke")),
]

UNWRITABLE = {"STRATA_DATA_DIR": "/proc/no", "STRATA_PORT": "0"}


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the machine reach the commands."""
    for name in [name for name in os.environ if name.startswith("STRATA_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(strata, list(arguments), env=environ)


def refused(result: Result) -> str:
    """Assert that a command failed with one line, and return it."""
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


@pytest.mark.parametrize("arguments", [[], *SUBCOMMANDS], ids=" ".join)
def test_help_is_given_when_asked_for_at_any_command(arguments: list[str]) -> None:
    """Every command says what it does and takes."""
    result = run(*arguments, "--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Usage: ")
    assert "--help" in result.stdout


def test_every_command_is_listed_when_help_is_asked_for() -> None:
    """The list holds what exists and nothing else."""
    listed = run("--help").stdout.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == list(COMMANDS)


@pytest.mark.parametrize(
    "arguments", [["no-such"], ["models", "no-such"], ["serve", "--no-such"], ["keys", "add"]]
)
def test_usage_is_refused_in_one_line_when_it_is_wrong(arguments: list[str]) -> None:
    """Click's own errors keep to the rule."""
    assert refused(run(*arguments))


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"STRATA_NO_SUCH": "1"}, "STRATA_NO_SUCH"),
        ({"STRATA_PORT": "seventy"}, "STRATA_PORT"),
        ({"STRATA_LOCAL__EVICTION": "random"}, "lru | lfu"),
        ({"STRATA_CONFIG": "/no/such/file.toml"}, "/no/such/file.toml"),
        ({"STRATA_HOST": "0.0.0.0"}, "api_keys_file"),
        (
            {"STRATA_LOCAL__MODEL": "none", "STRATA_SEMANTIC__ENABLED": "off", **UNWRITABLE},
            "/proc/no",
        ),
        ({"STRATA_HOST": "192.0.2.7", "STRATA_API_KEYS_FILE": "keys.toml"}, "192.0.2.7:8000"),
    ],
)
def test_the_start_is_refused_in_one_line_when_a_setting_is_wrong(
    environ: dict[str, str], named: str
) -> None:
    """The line names the key, or what is allowed."""
    assert named in refused(run("serve", **environ))


def test_the_start_is_refused_in_one_line_when_the_port_is_taken(tmp_path: Path) -> None:
    """Before any model is loaded."""
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = str(owner.getsockname()[1])
        assert f"127.0.0.1:{port}" in refused(run("serve", "--port", port))


def test_the_printed_settings_are_those_read_back_when_saved(tmp_path: Path) -> None:
    """What --print-config writes is a strata.toml of the same meaning."""
    upstream = '[[upstreams]]\nname = "o\\"é"\nbase_url = "http://h:1/v1"\nmodels = ["m"]\n'
    (tmp_path / "strata.toml").write_text(f"port = 8123\n{upstream}", encoding="utf-8")
    environ = {"STRATA_SEMANTIC__WRONG_HIT_BUDGET": "0.02", "STRATA_MODELS_DIR": "/models"}
    printed = run("serve", "--print-config", "--host", "localhost", **environ)
    assert printed.exit_code == 0
    (tmp_path / "again.toml").write_text(printed.stdout, encoding="utf-8")
    again = load_settings(tmp_path / "again.toml", {})
    assert (again.port, again.host) == (8123, "localhost")
    assert again.semantic.wrong_hit_budget == 0.02
    assert again.upstreams[0].name == 'o"é'
    assert run("serve", "--print-config", STRATA_CONFIG="again.toml").stdout == printed.stdout


def test_every_setting_is_shown_when_the_settings_are_printed() -> None:
    """TOML and JSON show the same keys as the settings table."""
    as_json = json.loads(run("serve", "--print-config", "--json").stdout)
    as_toml = tomllib.loads(run("serve", "--print-config").stdout)
    given = {key for key, value in as_json["local"].items() if value is not None}
    assert given == set(as_toml["local"])
    for name in variables():
        section, _, key = name.removeprefix("STRATA_").lower().partition("__")
        assert key in as_json[section] if key else section in as_json


def test_no_secret_is_shown_when_the_settings_are_printed() -> None:
    """Keys and passwords are masked in both forms."""
    environ = {"STRATA_ADMIN_KEY": "hunter2", "STRATA_REDIS__URL": "redis://u:hunter2@h/0"}
    for arguments in (["serve", "--print-config"], ["serve", "--print-config", "--json"]):
        printed = run(*arguments, **environ)
        assert printed.exit_code == 0
        assert "hunter2" not in printed.output
        assert "****" in printed.output


def test_a_key_is_shown_once_and_kept_as_a_hash_when_added(tmp_path: Path) -> None:
    """Adding, listing and revoking work on one private file."""
    environ = {"STRATA_API_KEYS_FILE": "keys.toml"}
    added = run("keys", "add", "alice", **environ)
    key = added.stdout.strip()
    text = (tmp_path / "keys.toml").read_text()
    assert key
    assert key not in text
    assert stat.S_IMODE((tmp_path / "keys.toml").stat().st_mode) == 0o600
    (row,) = json.loads(run("keys", "list", "--json", **environ).stdout)
    assert row["tenant"] == "alice"
    assert row["id"] in run("keys", "list", **environ).stdout
    assert run("keys", "revoke", row["id"], **environ).exit_code == 0
    assert json.loads(run("keys", "list", "--json", **environ).stdout) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["keys", "add", "alice"], "STRATA_API_KEYS_FILE"),
        (["keys", "add", "no spaces", "--file", "keys.toml"], "no spaces"),
        (["keys", "list", "--file", "no-such.toml"], "no-such.toml"),
        (["keys", "revoke", "key-1", "--file", "no-such.toml"], "no-such.toml"),
    ],
)
def test_key_commands_are_refused_in_one_line_when_given_bad_input(
    arguments: list[str], named: str
) -> None:
    """The line names the file, the tenant or the setting that is missing."""
    assert named in refused(run(*arguments))


def test_models_are_listed_as_absent_when_the_folder_is_empty(tmp_path: Path) -> None:
    """Listing prepares nothing."""
    result = run("models", "list", "--json", "--models-dir", str(tmp_path / "none"))
    assert {row["state"] for row in json.loads(result.stdout)} == {"absent"}
    assert not (tmp_path / "none").exists()
    table = run("models", "list", STRATA_MODELS_DIR=str(tmp_path / "none")).stdout
    assert str(tmp_path / "none" / "multilingual-e5-small") in table


def test_models_are_ready_when_prepared(bundled_models: BundledModels, models_dir: Path) -> None:
    """Preparing again changes nothing and shows where they are."""
    result = run("models", "prepare", "--json", STRATA_MODELS_DIR=str(models_dir))
    rows = {row["model"]: row for row in json.loads(result.stdout)}
    assert {row["state"] for row in rows.values()} == {"ready"}
    assert rows["smollm2-135m-instruct"]["path"] == str(bundled_models.chat_path)


def test_models_are_refused_in_one_line_when_they_cannot_be_prepared(tmp_path: Path) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "taken").write_text("")
    assert "taken" in refused(run("models", "prepare", STRATA_MODELS_DIR=str(tmp_path / "taken")))
    assert "prepare" in refused(run("models", "verify", "--models-dir", str(tmp_path / "none")))


def test_the_module_runs_when_the_script_is_not_installed() -> None:
    """``python -m gateway.cli`` is the same command."""
    result = subprocess.run(
        [sys.executable, "-m", "gateway.cli", "--version"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("strata")
