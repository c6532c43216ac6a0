"""Query parameters of admin routes: each known, given once, not empty."""

from collections.abc import Collection
from typing import Any

from litestar import Request

from gateway.errors import BadRequest

HTTP = Request[Any, Any, Any]

_FLAG = {"1": True, "true": True, "0": False, "false": False}


def read_query(
    request: HTTP, known: set[str], *, may_be_empty: Collection[str] = ()
) -> dict[str, str]:
    """Return the parameters by name.

    Raises:
        BadRequest: one is unknown, given twice or empty; names it.
    """
    query: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            raise BadRequest(f"{name}: unknown; known are {', '.join(sorted(known))}", param=name)
        if name in query:
            raise BadRequest(f"{name}: given twice", param=name)
        if not value and name not in may_be_empty:
            raise BadRequest(f"{name}: is empty", param=name)
        query[name] = value
    return query


def take_flag(query: dict[str, str], name: str) -> bool:
    """Take a flag out of the query; absent is False.

    Raises:
        BadRequest: it is neither a yes nor a no.
    """
    value = _FLAG.get(query.pop(name, "0").lower())
    if value is None:
        raise BadRequest(f"{name}: expected one of {', '.join(_FLAG)}", param=name)
    return value
