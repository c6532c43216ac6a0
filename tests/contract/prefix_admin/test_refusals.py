"""What the prefix routes refuse, and how they name it."""

import pytest

from tests.contract.prefix_admin.desk import Desk, Json, user
from tests.contract.stack import Stack


@pytest.mark.parametrize(
    ("method", "route", "body", "param"),
    [
        ("POST", "explain", {}, "request"),
        ("POST", "explain", {"request": {"model": "other", "messages": [user("x")]}},
         "request.model"),
        ("POST", "explain", {"request": {"model": "m", "messages": []}}, "request.messages"),
        ("POST", "explain", {"request": 3}, "request"),
        ("POST", "explain", {"request": {}, "extra": 1}, "extra"),
        ("POST", "warm", {"requests": []}, "requests"),
        ("POST", "warm", {"requests": {}}, "requests"),
        ("POST", "warm", {"requests": [{}], "pin": "yes"}, "pin"),
        ("POST", "warm", {"requests": [{}], "public": True, "tenant": "a"}, "tenant"),
        ("GET", "tree?limit=0", None, "limit"),
        ("GET", "tree?depth=x", None, "depth"),
        ("GET", "tree?nope=1", None, "nope"),
        ("DELETE", "?keep_pinned=perhaps", None, "keep_pinned"),
        ("DELETE", "?all=1", None, "all"),
    ],
)  # fmt: skip
def test_field_is_named_when_an_admin_request_is_wrong(
    desk: Desk, method: str, route: str, body: Json | None, param: str
) -> None:
    """Bad input is a 400 that names what is wrong."""
    url = f"/admin/prefix{route}" if route.startswith("?") else f"/admin/prefix/{route}"
    answer = desk.http.request(method, url, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_admin_routes_answer_plainly_when_there_is_no_local_model(relay_stack: Stack) -> None:
    """Without a local model there is nothing to explain; that is no server fault."""
    http = relay_stack.client.http
    body = {"request": {"model": "stub-model", "messages": [user("x")]}}
    assert http.post("/admin/prefix/explain", json=body).status_code == 503
    assert http.get("/admin/prefix/tree").status_code == 503
    assert http.delete("/admin/prefix").status_code == 503
    assert http.get("/admin/prefix/stats").json()["engine"]["state"] == "off"
