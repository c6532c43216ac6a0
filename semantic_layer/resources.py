"""Read the data files that ship inside this package."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "zh")


@cache
def load_json(name: str) -> Any:
    """Return a decoded data file; treat it as read-only."""
    return json.loads((files("semantic_layer") / "data" / name).read_text(encoding="utf-8"))


@cache
def load_lines(name: str) -> tuple[str, ...]:
    """Return the lines of a data file, stripped, without comment lines (``#``) and empty ones."""
    text = (files("semantic_layer") / "data" / name).read_text(encoding="utf-8")
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
