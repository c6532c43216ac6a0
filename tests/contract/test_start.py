"""What stops a start, and how it is said."""

import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.contract.conftest import StartStack
from tests.contract.stack import command, environment


def served(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run ``strata serve`` that is expected to end by itself."""
    named = {f"STRATA_{key}": value for key, value in settings.items()}
    return subprocess.run(
        command("serve", *arguments),
        cwd=folder,
        env=environment({"STRATA_DATA_DIR": str(folder / "data"), **named}),
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


WRONG = [
    ({"NO_SUCH_KEY": "1"}, ["no_such_key", "data_dir"]),
    ({"CACHE__NO_SUCH_KEY": "1"}, ["no_such_key", "ttl_s"]),
    ({"LOCAL__EVICTION": "magic"}, ["eviction", "lru", "s3fifo"]),
    ({"LOCAL__PREFIX_CACHING": "maybe"}, ["prefix_caching", "on", "off"]),
    ({"PORT": "99999"}, ["port"]),
    ({"PORT": "http"}, ["port"]),
    ({"CACHE__TTL_S": "-1"}, ["ttl_s"]),
    ({"SEMANTIC__WRONG_HIT_BUDGET": "2"}, ["wrong_hit_budget"]),
    ({"REDIS__URL": "http://x"}, ["redis", "embedded"]),
]


@pytest.mark.parametrize(("settings", "words"), WRONG)
def test_start_stops_naming_the_setting_when_it_is_wrong(
    tmp_path: Path, settings: dict[str, str], words: list[str]
) -> None:
    """An unknown key or a value out of range: its name and the allowed values, on one line."""
    done = served(tmp_path, **settings)
    said = (done.stdout + done.stderr).strip()
    assert done.returncode not in {0, None}
    assert all(word in said.lower() for word in words), said
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 2


def test_start_stops_naming_the_key_when_the_file_has_an_unknown_one(tmp_path: Path) -> None:
    """The same for ``strata.toml``."""
    (tmp_path / "strata.toml").write_text("[cache]\nttl_x = 5\n", encoding="utf-8")
    done = served(tmp_path)
    assert done.returncode != 0
    assert "ttl_x" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("key", ["LOCAL__MODEL", "EMBEDDER__MODEL"])
def test_start_stops_with_one_line_when_a_model_is_missing(tmp_path: Path, key: str) -> None:
    """A folder without a model is named; no stack trace."""
    (tmp_path / "empty").mkdir()
    done = served(tmp_path, PORT="0", **{key: str(tmp_path / "empty")})
    assert done.returncode != 0
    assert str(tmp_path / "empty") in done.stderr
    assert "Traceback" not in done.stderr


def test_start_stops_when_it_would_be_open_to_others(tmp_path: Path) -> None:
    """Listening beyond loopback needs a keys file."""
    done = served(tmp_path, HOST="0.0.0.0", PORT="0")
    assert done.returncode != 0
    assert "key" in done.stderr
    assert "Traceback" not in done.stderr


def test_start_stops_with_one_line_when_the_port_is_taken(tmp_path: Path) -> None:
    """The port is named."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = served(tmp_path, PORT=port, LOCAL__MODEL="none")
    assert done.returncode != 0
    assert port in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_are_printed_with_secrets_masked_when_asked(tmp_path: Path) -> None:
    """``--print-config`` shows what is in force, and no secret."""
    done = served(
        tmp_path,
        "--print-config",
        ADMIN_KEY="secret-admin-key",
        REDIS__URL="redis://user:secret-password@localhost:6379/0",
        CACHE__TTL_S="77",
    )
    assert done.returncode == 0, done.stderr
    assert "77" in done.stdout
    assert "secret" not in done.stdout


def test_help_is_there_when_asked() -> None:
    """The command and its parts explain themselves."""
    for arguments in ([], ["serve"], ["models"], ["keys"], ["keys", "add"]):
        done = subprocess.run(
            command(*arguments, "--help"),
            env=environment({}),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert "Usage" in done.stdout


def test_gateway_serves_without_stores_and_models_when_set_so(start_stack: StartStack) -> None:
    """Memory stores, no local model, semantic off: a plain gateway that starts and stops."""
    stack = start_stack(
        REDIS__URL="memory", QDRANT__URL="memory", LOCAL__MODEL="none", SEMANTIC__ENABLED="off"
    )
    assert httpx.get(f"{stack.url}/v1/models", trust_env=False).status_code == 200
    assert stack.client.chat("Hi").status_code == 404
    assert stack.children() == []
