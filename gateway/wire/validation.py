"""JSON bodies in, validated Structs out; a violation becomes a `BadRequest` naming its field."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

from gateway.errors import BadRequest

S = TypeVar("S")

MAX_SHORT = 4_096  # characters of what is no text to be read by a model: names, ids, stop strings
Short = Annotated[str, Meta(max_length=MAX_SHORT)]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_SHORT)]

MAX_DEPTH = 128  # of objects and lists in each other: far past any schema, far from Python's limit

_decode = msgspec.json.Decoder().decode
_AT = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_STEP = re.compile(r"\[[^\]]*\]|[^.\[]+")
_ENUM = "Invalid enum value"
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
    except RecursionError:
        raise BadRequest("the request body is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
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
        if names := _allowed(kind, str(error)):
            detail += f"; allowed are {', '.join(names)}"
        raise BadRequest(f"{param}: {detail}" if param else detail, param=param) from None
    except RecursionError:
        raise BadRequest("the request body is nested too deeply") from None


def _allowed(kind: type[Any], message: str) -> list[str]:
    """Return the values that a field takes, where a message blames one that is none of them."""
    if not message.startswith(_ENUM):
        return []
    at = _AT.search(message)
    found = [inspect.type_info(kind)]
    for step in _STEP.findall(at["path"]) if at else ():
        found = [inner for outer in _choices(found) for inner in _stepped(outer, step)]
    return sorted({str(v) for one in _choices(found) for v in getattr(one, "values", ())})


def _choices(found: Iterable[inspect.Type]) -> Iterable[inspect.Type]:
    """Return types with each union taken apart and constraints' wrappers taken off."""
    for one in found:
        if isinstance(one, inspect.UnionType):
            yield from _choices(one.types)
        elif isinstance(one, inspect.Metadata):
            yield from _choices([one.type])
        else:
            yield one


def _stepped(outer: inspect.Type, step: str) -> Iterable[inspect.Type]:
    """Return the types one step further down a path: of a field's name, or of items."""
    if isinstance(outer, inspect.StructType):
        return [field.type for field in outer.fields if field.encode_name == step]
    inner = getattr(outer, "item_type", getattr(outer, "value_type", None))
    return [] if inner is None else [inner]


def _located(message: str, where: str) -> tuple[str, str | None]:
    at = _AT.search(message)
    detail = message[: at.start()] if at else message
    steps = [where, at["path"].replace("[...]", "") if at else ""]
    if field := _FIELD.match(detail):
        steps.append(field["field"])
    param = ".".join(filter(None, steps)).replace(".[", "[")
    return detail[:1].lower() + detail[1:], param or None
