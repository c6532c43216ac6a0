"""Texts that would be script, formulas or secrets: kept and shown as text only (field case O03)."""

import uuid

import httpx
import pytest

from tests.contract.conftest import Relay
from tests.contract.stack import Stack

PAYLOADS = [
    "<img src=x onerror=\"document.title='pwned'\">",
    "</script><script>document.title='pwned'</script>",
    "[x](javascript:document.title='pwned')",
    "{{7*7}} ${7*7}",
    "=1+1",
    "a\u202eb end",
    "<svg/onload=alert(1)> \u2028 \x00 end",
]
TOKEN = "sk-test-visible-123"


@pytest.fixture
def hostile(relay: Relay) -> tuple[str, Relay]:
    """Every payload asked once, with a bearer token; gives the tag they were stored under."""
    tag = uuid.uuid4().hex
    for payload in PAYLOADS:
        relay.answer(
            payload,
            headers={
                "x-strata-tags": tag,
                "authorization": f"Bearer {TOKEN}",
                "user-agent": "<svg onload=1>",
            },
        )
    return tag, relay


def test_payloads_are_plain_json_when_entries_are_browsed(hostile: tuple[str, Relay]) -> None:
    """What was stored comes back letter by letter, as JSON that no browser takes for a page."""
    tag, relay = hostile
    response = relay.http.get("/admin/cache/entries", params={"tag": tag, "limit": 50})
    assert response.headers["content-type"].split(";")[0] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert {row["text"] for row in response.json()["entries"]} == set(PAYLOADS)


@pytest.mark.parametrize(
    "path", ["/admin/stats", "/metrics", "/health/ready", "/v1/models", "/no-such-route"]
)
def test_no_answer_is_taken_for_a_page(hostile: tuple[str, Relay], path: str) -> None:
    """Neither payload nor token stands in any other output."""
    response = hostile[1].http.get(path)
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "html" not in response.headers["content-type"]
    assert "pwned" not in response.text
    assert TOKEN not in response.text


def test_error_quotes_a_hostile_name_as_json_when_the_model_is_markup(
    relay: Relay,
) -> None:
    """An unknown model is named in the envelope, and stays a string there."""
    response = relay.chat("Hi.", model="<b>m</b>")
    assert response.status_code == 404
    assert response.headers["content-type"].split(";")[0] == "application/json"
    assert "<b>m</b>" in response.json()["error"]["message"]


def test_token_is_nowhere_in_what_was_kept_or_logged(
    relay_stack: Stack, hostile: tuple[str, Relay]
) -> None:
    """Not in the log, not in the entries, not in what a look-up shows."""
    tag, relay = hostile
    shown = relay.http.get("/admin/cache/entries", params={"tag": tag}).text
    assert TOKEN not in shown
    assert TOKEN not in relay_stack.log
    assert "pwned" not in relay_stack.log


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_nothing_is_changed_when_a_foreign_page_posts_a_form(relay_stack: Stack, kind: str) -> None:
    """A browser's cross-site form and fetch are refused; neither needs to be guessed by content."""
    for method, path in [
        ("POST", "/admin/cache/entries"),
        ("DELETE", "/admin/cache/entries?all=1"),
    ]:
        response = httpx.request(
            method,
            relay_stack.url + path,
            content=b'[{"request": {}}]',
            headers={
                "content-type": kind,
                "origin": "http://evil.example",
                "sec-fetch-site": "cross-site",
            },
            trust_env=False,
        )
        assert response.status_code == 403
