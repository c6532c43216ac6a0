"""Model requests pass the framework by, and its answers to errors still reach the client."""

from typing import Any

import pytest

from gateway.api.shortcut import Shortcut, answered_by
from gateway.errors import BadRequest


class Route:
    """An ASGI app that counts what it is asked; raises its error, if it has one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._error = error

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        if self._error is not None:
            raise self._error
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def asked(app: Any, path: str = "/v1/x", method: str = "POST") -> dict[str, Any]:
    """Ask an app; return the scope as it is afterwards."""
    scope = {"type": "http", "path": path, "method": method, "state": {}}

    async def nothing(*_: Any) -> None:
        return

    await app(scope, nothing, nothing)
    return scope


async def test_app_is_passed_by_when_the_route_answers() -> None:
    """The route is asked once, and the log learns its name."""
    route, app = Route(), Route()
    scope = await asked(Shortcut(app, {"/v1/x": route}))
    assert (route.asked, app.asked, scope["path_template"]) == (["/v1/x"], [], "/v1/x")


@pytest.mark.parametrize(("path", "method"), [("/v1/x", "GET"), ("/v1/x/", "POST"), ("/", "POST")])
async def test_app_answers_when_it_is_no_post_to_a_route(path: str, method: str) -> None:
    """Wrong methods and other paths get what the framework says of them."""
    route, app = Route(), Route()
    await asked(Shortcut(app, {"/v1/x": route}), path, method)
    assert (route.asked, app.asked) == ([], [path])


async def test_error_is_raised_behind_the_app_when_the_route_fails() -> None:
    """The route is not asked a second time: its body is read already."""
    route = Route(BadRequest("no", param="model"))
    app = answered_by(route)(Route())
    with pytest.raises(BadRequest, match="no"):
        await asked(Shortcut(app, {"/v1/x": route}))
    assert route.asked == ["/v1/x"]


async def test_route_is_asked_when_nothing_failed_before() -> None:
    """A request that took no shortcut is answered all the same."""
    route = Route()
    await asked(answered_by(route)(Route()))
    assert route.asked == ["/v1/x"]
