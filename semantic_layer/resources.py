"""Read the data files that ship inside this package."""

import json
import re
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


@cache
def load_pattern(file: str, name: str) -> re.Pattern[str]:
    """Return a class of turns of speech, written in a data file as expressions one a line."""
    return re.compile("|".join(load_class(file, name)))


@cache
def load_class(file: str, name: str) -> tuple[str, ...]:
    """Return what the lines "name: text" of a data file say of one name."""
    lines = (line.partition(":") for line in load_lines(file))
    return tuple(text.strip() for key, _, text in lines if key == name)
