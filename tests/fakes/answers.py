"""Answers of every kind as a backend's events, for tests of the APIs that render them."""

from typing import Any

from gateway.backends.base import Delta, Event, Final, Finish, Usage

USAGE = Usage(9, 5, 4)
TEXT = "晚安🌙 café 👩‍🚀"


def call(place: int, **function: Any) -> Delta:
    """Return a piece of a tool call; the first one names the function."""
    head = {"id": f"call_{place}", "type": "function"} if "name" in function else {}
    return Delta(0, tool_calls=[{"index": place, **head, "function": function}])


def ended(*deltas: Delta, reason: str = "stop", stop: str | None = None) -> list[Event]:
    return [*deltas, Finish(0, reason, stop), Final(USAGE)]


SAID = ended(*(Delta(0, char) for char in TEXT))
CUT = ended(Delta(0, "half a"), reason="length")
STOPPED = ended(Delta(0, "one "), stop="two")
EMPTY = ended()
REFUSED = ended(Delta(0, refusal="I "), Delta(0, refusal="won't."))
FILTERED = ended(Delta(0, "so"), reason="content_filter")
THOUGHT = ended(
    Delta(0, extra={"reasoning_content": "Hm, "}),
    Delta(0, extra={"reasoning_content": "yes."}),
    Delta(0, "Yes."),
)
CALLED = ended(
    Delta(0, "Let me look."),
    call(0, name="weather", arguments=""),
    call(0, arguments='{"city": '),
    call(0, arguments='"Zürich 🌧"}'),
    reason="tool_calls",
)
CALLED_TWICE = ended(
    call(0, name="weather", arguments='{"city": "Rome"}'),
    call(1, name="time", arguments=""),
    call(1, arguments="{}"),
    reason="tool_calls",
)
INTERLEAVED = ended(
    call(0, name="weather", arguments='{"city"'),
    call(1, name="time", arguments='{"z'),
    call(0, arguments=': "Rome"}'),
    call(1, arguments='one": 1}'),
    reason="tool_calls",
)
SILENT_CALL = ended(call(0, name="now"), reason="tool_calls")

CITATION = {"url": "https://example.org", "title": "T", "start_index": 4, "end_index": 7}
CITED = ended(
    Delta(text="See [1]."),
    Delta(extra={"annotations": [{"type": "url_citation", "url_citation": CITATION}]}),
)

ANSWERS = {
    "said": SAID,
    "cut": CUT,
    "stopped": STOPPED,
    "empty": EMPTY,
    "refused": REFUSED,
    "filtered": FILTERED,
    "thought": THOUGHT,
    "called": CALLED,
    "called twice": CALLED_TWICE,
    "interleaved": INTERLEAVED,
    "silent call": SILENT_CALL,
    "cited": CITED,
}
STORED = set(ANSWERS) - {"filtered"}
