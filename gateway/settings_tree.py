"""Settings as decoded TOML and text turned into dataclasses. Knows none of the settings.

A class that may also be written as one value names that key as its ``SHORTHAND``.
"""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

PREFIX = "STRATA_"


class SettingsError(Exception):
    """A key or value that stops the start; the message names it and what is allowed."""


def allowed(kind: Any) -> str:
    """Describe the values a settings type takes."""
    origin = get_origin(kind)
    if origin is Literal:
        return " | ".join(map(str, get_args(kind)))
    if origin is list:
        return f"a list of {allowed(get_args(kind)[0])}"
    if origin is Annotated:
        base, meta = get_args(kind)
        if meta.description:
            return str(meta.description)
        limits = [
            f"{sign} {bound:g}"
            for sign, bound in (("≥", meta.ge), (">", meta.gt), ("≤", meta.le))
            if bound is not None
        ]
        return " ".join([allowed(base), ", ".join(limits)]).strip()
    if kind is bool:
        return "true | false"
    names = {int: "whole number", float: "number", str: "text", Path: "path", dict: "a table"}
    parts = [part for part in get_args(kind) if part is not type(None)]
    return names.get(origin or kind) or (allowed(parts[0]) if parts else str(kind))


def build(kind: Any, tree: Any, where: str) -> Any:
    """Return a settings dataclass from plain values; ``where`` is the dotted key it stands at.

    Raises:
        SettingsError: an unknown or missing key, or a value that is not allowed.
    """
    if isinstance(tree, str) and hasattr(kind, "SHORTHAND"):
        tree = {kind.SHORTHAND: tree}
    if not isinstance(tree, dict):
        raise SettingsError(f"{_named(where)}: expected a section with {_known(kind, where)}")
    known = {key: inner for key, inner, _ in keys(kind)}
    for key in tree:
        if key not in known:
            unknown = _named(_dotted(where, key))
            raise SettingsError(f"unknown setting {unknown}; known: {_known(kind, where)}")
    values = {key: _value(known[key], tree[key], _dotted(where, key)) for key in tree}
    missing = [
        _dotted(where, spec.name)
        for spec in dataclasses.fields(kind)
        if spec.default is dataclasses.MISSING
        and spec.default_factory is dataclasses.MISSING
        and spec.name not in values
    ]
    if missing:
        raise SettingsError(f"missing setting {', '.join(missing)}")
    return kind(**values)


def _value(kind: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return build(kind, value, where)
    if (row_kind := _row_kind(kind, list)) is not None:
        if not isinstance(value, list):
            raise SettingsError(f"{where}: expected [[{where}]] tables in strata.toml")
        return [build(row_kind, row, f"{where}[{i}]") for i, row in enumerate(value)]
    if (row_kind := _row_kind(kind, dict)) is not None and isinstance(value, dict):
        return {key: build(row_kind, row, _dotted(where, key)) for key, row in value.items()}
    if value == "" and type(None) in get_args(kind):
        return None
    if kind is bool and isinstance(value, str):
        value = {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(value, value)
    try:
        return msgspec.convert(value, kind, strict=False, dec_hook=_decode_path)
    except msgspec.ValidationError:
        raise SettingsError(
            f"{_named(where)}: {value!r} is not allowed; use {allowed(kind)}"
        ) from None


def is_table_list(kind: Any) -> bool:
    """Say whether a key is a list of tables, which no variable can hold."""
    return _row_kind(kind, list) is not None


def _row_kind(kind: Any, container: type) -> Any:
    """Return the dataclass that a list or a table of them holds, None for anything else."""
    if get_origin(kind) is not container:
        return None
    last = get_args(kind)[-1]
    return last if dataclasses.is_dataclass(last) else None


def _decode_path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, (str, Path)):
        return Path(value).expanduser()
    raise TypeError(f"{kind} can't be read from settings")


def keys(kind: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, type and default of every key that users may set."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        (spec.name, hints[spec.name], spec.default)
        for spec in dataclasses.fields(kind)
        if not spec.metadata.get("derived")
    ]


def _known(kind: Any, where: str) -> str:
    return ", ".join(_dotted(where, key) for key, _, _ in keys(kind))


def _named(where: str) -> str:
    return f"{where} ({PREFIX}{where.upper().replace('.', '__')})"


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
