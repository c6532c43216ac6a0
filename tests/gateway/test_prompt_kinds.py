"""Kinds of traffic by the shape of requests."""

from typing import Any

import pytest

from gateway.backends.prompt_kinds import KindTally, kind_of


def said(*turns: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"role": role, "content": text} for role, text in turns]


@pytest.mark.parametrize(
    ("messages", "tools", "kind"),
    [
        (said(("system", "s"), ("user", "u")), [], "single-turn"),
        (said(("user", "u"), ("assistant", "a"), ("user", "v")), [], "multi-turn"),
        (said(("user", "u")), [{"type": "function"}], "agent-loop"),
        (said(("user", "u"), ("assistant", "a"), ("tool", "t")), [], "agent-loop"),
    ],
)
def test_kind_follows_the_roles(messages: list[dict[str, Any]], tools: Any, kind: str) -> None:
    """As the scenarios of ``strata analyze`` are named."""
    assert kind_of(messages, tools) == kind


def test_due_share_is_what_the_turn_before_had_sent() -> None:
    """All before the last answer; nothing in a first turn."""
    tally = KindTally()
    tally.add(said(("user", "x" * 30)), [], 30, 0)
    turn = said(("user", "x" * 30), ("assistant", "y" * 50), ("user", "z" * 20))
    tally.add(turn, [], 100, 16)
    later, first = tally.kinds()
    assert (later.kind, later.requests, later.due_share, later.hit_share) == (
        "multi-turn",
        1,
        0.3,
        0.16,
    )
    assert (first.kind, first.due_share) == ("single-turn", 0.0)
