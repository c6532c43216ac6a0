"""The licence is whole, and said the same everywhere."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_licence_is_the_whole_apache_text_and_named_alike() -> None:
    """Its text from first to last section, its name in the metadata, the image and the README."""
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    for number in range(1, 10):
        assert f"\n   {number}. " in text
    assert "END OF TERMS AND CONDITIONS" in text
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert 'licenses="Apache-2.0"' in (ROOT / "Dockerfile").read_text()
    assert "Apache-2.0" in (ROOT / "README.md").read_text()


def test_the_version_is_the_changelogs_newest() -> None:
    """The package, the image and the list of changes speak of the same release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changes = (ROOT / "CHANGELOG.md").read_text()
    released = [line.split("]")[0][4:] for line in changes.splitlines() if line.startswith("## [")]
    assert version in released or released[0] == "Unreleased"
    assert f"strata-gateway:{version}" in (ROOT / "docker-compose.yml").read_text()
