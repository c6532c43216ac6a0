"""JSON bodies in, validated Structs out; a violation becomes a `BadRequest` naming its field."""

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from gateway.errors import BadRequest

S = TypeVar("S")

MAX_DEPTH = 128  # of objects and lists in each other: far past any schema, far from Python's limit

_decode = msgspec.json.Decoder().decode
_AT = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_FIELD = re.compile(r"^Object (?:missing required|contains unknown) field `(?P<field>[^`]+)`")


def decode_json(body: bytes) -> Any:
    """Return the JSON value in a body.

    Raises:
        BadRequest: the body is empty or no valid JSON.
    """
    if not body:
        raise BadRequest("the request body is empty; expected JSON")
    try:
        tree = _decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadRequest(f"the request body is not valid JSON: {error}") from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check_depth(tree)
    return tree


def _check_depth(tree: Any) -> None:
    fields = tree.items() if isinstance(tree, dict) else [(None, tree)]
    for name, value in fields:
        level, depth = [value], 1
        while level:
            if depth > MAX_DEPTH:
                problem = f"nested deeper than {MAX_DEPTH} levels"
                raise BadRequest(f"{name}: {problem}" if name else problem, param=name)
            level = [inner for outer in level for inner in _inside(outer)]
            depth += 1


def _inside(value: Any) -> Iterable[Any]:
    """Return what a list or object holds; nothing for other values."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def decode_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body.

    Raises:
        BadRequest: the body is empty, no valid JSON, or no object.
    """
    tree = decode_json(body)
    if not isinstance(tree, dict):
        raise BadRequest("the request body must be a JSON object")
    return tree


def wrong(param: str, problem: str) -> BadRequest:
    """Return the error of one field."""
    return BadRequest(f"{param}: {problem}", param=param)


def convert(tree: Any, kind: type[S], where: str = "", *, strict: bool = True) -> S:
    """Return decoded JSON as a Struct; ``where`` is put before the name of a wrong field.

    ``strict`` False also takes numbers written as text, as queries have them.

    Raises:
        BadRequest: a field is missing, unknown where that is forbidden, or has a wrong value.
    """
    try:
        return msgspec.convert(tree, kind, strict=strict)
    except msgspec.ValidationError as error:
        detail, param = _located(str(error), where)
        raise BadRequest(f"{param}: {detail}" if param else detail, param=param) from None
    except RecursionError:
        raise BadRequest("the request body is nested too deeply") from None


def _located(message: str, where: str) -> tuple[str, str | None]:
    at = _AT.search(message)
    detail = message[: at.start()] if at else message
    steps = [where, at["path"].replace("[...]", "") if at else ""]
    if field := _FIELD.match(detail):
        steps.append(field["field"])
    param = ".".join(filter(None, steps)).replace(".[", "[")
    return detail[:1].lower() + detail[1:], param or None
