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

from gateway.app import create_app
from gateway.cli import COMMANDS, strata
from gateway.settings import NOT_SETTINGS, Settings, UpstreamSettings, load_settings, variables
from tests.contract.stack import Stack, environment, serving, until
from tests.fakes.backends import FakeBackend
from tests.fakes.gateway import MemoryGateway

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
PAGES = "\n".join([README, *DOCS.values()])
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
        environ = environment({"STRATA_PORT": url.rpartition(":")[2]})
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        result = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=120, env=environ
        )
        return result.stdout


def section(title: str) -> str:
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def examples() -> list[Example]:
    titles = ("First requests", "Why a hit, why a miss", "Prompts that hit")
    return examples_of("".join(map(section, titles)))


def examples_of(page: str) -> list[Example]:
    blocks = BLOCK.findall(page)
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


@pytest.mark.slow
def test_the_tuning_guide_works_when_followed(stack: Stack) -> None:
    """Each command of the week, on a gateway that has answered a little."""
    shown = examples_of(DOCS["tuning.md"])
    assert len(shown) >= 7
    for example in shown:
        assert '"error":' not in example.run(stack.url)


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
    "line",
    [line for line in PAGES.splitlines() if line.startswith("strata ")]
    + sorted(set(re.findall(r"`(strata \w[^`\n]*)`", "\n".join(DOCS.values())))),
)
def test_every_command_line_is_understood(line: str) -> None:
    """With the arguments and options it is shown with."""
    words = [word for word in line.split()[1:] if word.startswith("--") or "/" not in word]
    command = words[: 2 if words[0] in ("keys", "models", "analyze") else 1]
    shown = CliRunner().invoke(strata, [*command, "--help"])
    assert shown.exit_code == 0
    for option in (word for word in words if word.startswith("--")):
        assert option in shown.stdout


def test_every_variable_that_is_mentioned_is_one() -> None:
    """In prose and in commands alike."""
    mentioned = set(re.findall(r"STRATA_[A-Z_]+[A-Z]", PAGES))
    assert mentioned <= {*variables(), *NOT_SETTINGS, "STRATA_SECTION__KEY"}


def test_every_key_that_is_mentioned_is_one() -> None:
    """In the guides, and in what the doctor says mends a fault."""
    sections = {f.name for f in dataclasses.fields(Settings) if dataclasses.is_dataclass(f.type)}
    known = {name.removeprefix("STRATA_").lower().replace("__", ".") for name in variables()}
    checks = "".join(p.read_text() for p in (ROOT / "gateway/doctor/checks").glob("*.py"))
    told = "".join(re.findall(r'"[^"\n]*"', checks))
    keys = re.findall(rf"\b(?:{'|'.join(sections)})\.[a-z_]+\b", "".join(DOCS.values()) + told)
    assert len(set(keys)) > 20
    assert set(keys) - known <= {"semantic.intents"}


def test_every_route_that_is_mentioned_is_one() -> None:
    """With its method."""
    spec = create_app(parts=MemoryGateway(FakeBackend([])).parts).openapi_schema.to_schema()
    routes = {re.sub(r"\{.*?\}", "*", path): each for path, each in spec["paths"].items()}
    named = set(re.findall(r"(GET|POST|PUT|DELETE) (/(?:admin|health|v1)[\w/]*)", PAGES))
    assert len(named) > 10
    for method, path in named:
        fitting = [each for route, each in routes.items() if _fits(path, route)]
        assert any(method.lower() in each for each in fitting), (method, path)


def _fits(path: str, route: str) -> bool:
    parts, wanted = path.rstrip("/").split("/"), route.rstrip("/").split("/")
    return len(parts) == len(wanted) and all(
        one in (other, other.replace("*", one)) for one, other in zip(parts, wanted, strict=True)
    )


def test_every_page_that_is_linked_is_there() -> None:
    """From the README and between the guides."""
    for folder, page in [(ROOT, README), *((ROOT / "docs", text) for text in DOCS.values())]:
        for link in re.findall(r"\]\(([^)#:]+\.md)\)", page):
            assert (folder / link).is_file(), link
