"""Settings written as TOML, in the form ``strata.toml`` is read."""

import json
from typing import Any


def to_toml(tree: dict[str, Any]) -> str:
    """Return the text of plain values, sections and lists of sections; None is a comment."""
    sections = {key: value for key, value in tree.items() if isinstance(value, dict)}
    tables = {key: value for key, value in tree.items() if _is_tables(value)}
    plain = {key: tree[key] for key in tree.keys() - sections.keys() - tables.keys()}
    blocks = [_lines({key: plain[key] for key in tree if key in plain})]
    blocks += [[f"[{name}]", *_lines(section)] for name, section in sections.items()]
    blocks += [[f"[[{name}]]", *_lines(row)] for name, rows in tables.items() for row in rows]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _lines(values: dict[str, Any]) -> list[str]:
    return [
        f"# {key} is not set" if value is None else f"{key} = {_literal(value)}"
        for key, value in values.items()
    ]


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
