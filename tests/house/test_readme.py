"""What the README says is so: its examples run, its tables agree with the code."""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import COMMANDS, strata
from gateway.settings import NOT_SETTINGS, UpstreamSettings, load_settings, variables
from tests.contract.stack import Stack, serving, until

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
URL = "http://127.0.0.1:8000"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """A block of code that talks to the gateway, and what the README says it prints."""

    language: str
    code: str
    output: str | None

    def run(self, url: str) -> str:
        code = self.code.replace(URL, url)
        command = ["sh", "-c", code] if self.language == "sh" else [sys.executable, "-c", code]
        result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        return result.stdout


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def examples() -> list[Example]:
    titles = ("First requests", "Why a hit, why a miss", "Prompts that hit")
    blocks = BLOCK.findall("".join(map(section, titles)))
    found = []
    for at, (language, text) in enumerate(blocks):
        if language in ("sh", "python"):
            following = blocks[at + 1] if at + 1 < len(blocks) else ("", "")
            found.append(Example(language, text, following[1] if following[0] == "text" else None))
    return found


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, bundled_models: object, models_dir: Path
) -> Iterator[Stack]:
    """A gateway that has answered nothing yet."""
    with serving(tmp_path_factory.mktemp("readme"), models_dir) as started:
        yield started


@pytest.mark.slow
def test_the_examples_print_what_is_written_when_run_in_their_order(stack: Stack) -> None:
    """From the first curl to the look-up, on a gateway as it comes."""
    shown = examples()
    assert len(shown) >= 5
    looked_up = ""
    for at, example in enumerate(shown):
        output = example.run(stack.url)
        if example.output is not None:
            assert output == example.output
        if at == 0:
            until(stack.client.entries, what="the first answer is kept")
        if "/admin/cache/lookup" in example.code:
            looked_up = output.replace(" ", "")
    assert '"outcome":"miss"' in looked_up
    assert '"verdict":"veto"' in looked_up


def test_every_setting_is_listed_as_it_is() -> None:
    """Name, default and allowed values of each, in order, and no other."""
    rows = re.findall(r"^\| `(STRATA_\w+)` \| (.*?) \| (.*) \| [^|]+ \|$", README, re.MULTILINE)
    expected = [
        (name, default.replace("None", ""), allowed.replace("|", "\\|"))
        for name, (default, allowed) in variables().items()
    ]
    assert rows == expected


def test_the_settings_file_of_the_readme_is_accepted(tmp_path: Path) -> None:
    """The upstream table as written."""
    (toml,) = [text for language, text in BLOCK.findall(README) if language == "toml"]
    (tmp_path / "strata.toml").write_text(toml)
    keys = {"VLLM_API_KEY": "k", "OPENAI_API_KEY": "k"}
    settings = load_settings(tmp_path / "strata.toml", keys)
    assert settings.upstreams[0].replicas[0].url == "http://10.0.0.6:8000/v1"
    for field in dataclasses.fields(UpstreamSettings):
        assert field.name in section("Settings"), field.name


def test_every_command_is_listed() -> None:
    """Neither a command too few nor one too many."""
    rows = re.findall(r"^\| (`strata .+?) \|", section("Commands"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(?:strata )?(\w+)", row)}
    assert set(COMMANDS) <= named
    groups = {"prepare", "list", "verify", "add", "revoke", "limit", "rules"}
    assert named <= set(COMMANDS) | groups


@pytest.mark.parametrize(
    "line", [line for line in README.splitlines() if line.startswith("strata ")]
)
def test_every_command_line_is_understood(line: str) -> None:
    """With the arguments and options it is shown with."""
    words = [word for word in line.split()[1:] if word.startswith("--") or "/" not in word]
    command = words[: 2 if words[0] in ("keys", "models") else 1]
    shown = CliRunner().invoke(strata, [*command, "--help"])
    assert shown.exit_code == 0
    for option in (word for word in words if word.startswith("--")):
        assert option in shown.stdout


def test_every_variable_that_is_mentioned_is_one() -> None:
    """In prose and in commands alike."""
    mentioned = set(re.findall(r"STRATA_[A-Z_]+[A-Z]", README))
    assert mentioned <= {*variables(), *NOT_SETTINGS, "STRATA_SECTION__KEY"}
