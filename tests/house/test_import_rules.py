"""The packages keep apart, and the rules that say so notice a breach."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"
PACKAGES = ("gateway", "semantic_layer", "prefix_layer", "native_library")
FOLDERS = ("calibration", "chats", "models", "stores", "text")  # that rules name


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LINTER), "--no-cache"],
        cwd=folder,
        check=False,
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with our rules and packages that keep them."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for package in (*PACKAGES, *(f"semantic_layer/{folder}" for folder in FOLDERS)):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "part.py").write_text("")
    return tmp_path


def test_the_rules_are_kept_by_our_packages() -> None:
    """The same command that `make check` runs."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("semantic_layer/part.py", "import prefix_layer"),
        ("prefix_layer/part.py", "import semantic_layer"),
        ("semantic_layer/part.py", "import gateway.part"),
        ("prefix_layer/part.py", "from gateway import part"),
        ("gateway/part.py", "from semantic_layer.part import x"),
        ("gateway/part.py", "import prefix_layer.part"),
        ("gateway/part.py", "import native_library"),
        ("native_library/part.py", "import prefix_layer"),
        ("semantic_layer/text/part.py", "from semantic_layer.models import part"),
        ("semantic_layer/calibration/part.py", "from semantic_layer.chats import part"),
    ],
)
def test_a_breach_is_noticed_when_a_module_imports_what_it_may_not(
    tree: Path, module: str, line: str
) -> None:
    """A rule that cannot fail guards nothing."""
    assert lint(tree).returncode == 0
    (tree / module).write_text(f"{line}\n")
    result = lint(tree)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout


def test_the_layers_may_be_used_when_entered_through_their_roots(tree: Path) -> None:
    """What the gateway does all the time."""
    (tree / "gateway/part.py").write_text("import semantic_layer\nfrom prefix_layer import x\n")
    assert lint(tree).returncode == 0
