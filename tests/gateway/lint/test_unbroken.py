"""Texts without a sentence's end, a line's end, or a space, in which only the start changes."""

from collections.abc import Callable

import pytest

from gateway.scenarios import Words
from tests.gateway.lint.conftest import Lint
from tests.gateway.lint.logs import chat

ENGLISH = Words(3).text(300).replace(".", "").lower()
CHINESE = "".join(chr(0x4E00 + at * 7919 % 3000) for at in range(600))


LETTERS = "a" * 50_000


@pytest.mark.parametrize(
    "text", [ENGLISH, CHINESE, LETTERS], ids=["words", "no spaces", "equal letters"]
)
@pytest.mark.parametrize("role", ["system", "user"])
@pytest.mark.parametrize(
    ("start", "cause", "name", "char"),
    [
        (lambda at: f"2026-11-30T10:0{at}:00Z", "timestamp", "", 0),
        (lambda at: f"session {at * 7919 + 40111}", "identifier", "session id", 8),
        (lambda at: f"sess_{at * 7919 + 40111}x", "identifier", "session id", 0),
        (lambda at: f"turn {at}", "number", "counter", 5),
    ],
)
def test_start_is_named_when_an_unbroken_line_goes_on_alike(
    lint: Lint,
    text: str,
    role: str,
    start: Callable[[int], str],
    cause: str,
    name: str,
    char: int,
) -> None:
    """The cause and the place of what changes, and every request that it split."""
    rows = [chat((role, f"{start(at)} {text}"), ("user", f"What of {at}?")) for at in range(5)]
    (found,) = lint(rows).findings
    assert (found.cause, found.name, found.position.char) == (cause, name, char)
    assert found.requests == 4


def test_reach_is_what_mending_would_give_when_a_log_is_short(lint: Lint) -> None:
    """The first request and what no whole block holds are not promised."""
    rows = [
        chat(("system", f"10:0{at}:00 {ENGLISH}"), ("user", f"What of {at}?")) for at in range(5)
    ]
    mended = [chat(("system", ENGLISH), ("user", f"What of {at}? 10:0{at}:00")) for at in range(5)]
    told, reached = lint(rows).reachable_share, lint(mended).hit_share
    assert abs(told - reached) < 0.03
