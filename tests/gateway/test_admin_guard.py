"""Who gets into the admin routes."""

import pytest

from gateway.admin.guard import AdminGuard
from gateway.errors import Forbidden, Unauthorized

LOCAL = {"host": "127.0.0.1:8000"}


@pytest.mark.parametrize(
    "headers",
    [
        LOCAL,
        {"host": "localhost"},
        {"host": "[::1]:8000"},
        {**LOCAL, "origin": "http://127.0.0.1:8000"},
        {**LOCAL, "sec-fetch-site": "same-origin"},
    ],
)
def test_local_caller_enters_when_no_key_is_set(headers: dict[str, str]) -> None:
    """A person at this machine needs no key."""
    AdminGuard(None).check(headers, "127.0.0.1")


@pytest.mark.parametrize(
    ("headers", "peer"),
    [
        (LOCAL, "10.0.0.7"),
        (LOCAL, None),
        ({**LOCAL, "x-forwarded-for": "127.0.0.1"}, "10.0.0.7"),
        ({**LOCAL, "x-forwarded-for": "8.8.8.8"}, "127.0.0.1"),
        ({**LOCAL, "forwarded": "for=8.8.8.8"}, "127.0.0.1"),
        ({**LOCAL, "via": "1.1 proxy"}, "127.0.0.1"),
        ({"host": "evil.example:8000"}, "127.0.0.1"),
        ({"host": "localhost.evil.example"}, "127.0.0.1"),
        ({"host": "localhost@evil.example"}, "127.0.0.1"),
        ({}, "127.0.0.1"),
        ({**LOCAL, "origin": "https://evil.example"}, "127.0.0.1"),
        ({**LOCAL, "origin": "http://127.0.0.1:9999"}, "127.0.0.1"),
        ({**LOCAL, "origin": "null"}, "127.0.0.1"),
        ({**LOCAL, "sec-fetch-site": "cross-site"}, "127.0.0.1"),
    ],
)
def test_caller_is_refused_when_no_key_is_set_and_it_is_not_plainly_local(
    headers: dict[str, str], peer: str | None
) -> None:
    """Other hosts, proxies, rebound names and foreign pages stay out."""
    with pytest.raises(Forbidden):
        AdminGuard(None).check(headers, peer)


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer secret-key"}, {"x-strata-admin-key": "secret-key"}]
)
def test_key_opens_from_anywhere_when_one_is_set(headers: dict[str, str]) -> None:
    """With a key the key decides, wherever the caller is."""
    AdminGuard("secret-key").check({"host": "strata.example", **headers}, "10.0.0.7")


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer other"}, {"x-strata-admin-key": ""}]
)
def test_local_caller_is_refused_when_a_key_is_set_and_not_given(headers: dict[str, str]) -> None:
    """A set key is asked of everybody."""
    with pytest.raises(Unauthorized):
        AdminGuard("secret-key").check({**LOCAL, **headers}, "127.0.0.1")
