"""Programs of others that judge our files, where they are installed."""

import shutil
import subprocess

import pytest


def needed(program: str) -> str:
    """Return the program's path; the test is left out, by name, where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def accepted(*command: str) -> None:
    """Run a checking command and fail with all it said if it finds fault."""
    result = subprocess.run(
        [needed(command[0]), *command[1:]],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
