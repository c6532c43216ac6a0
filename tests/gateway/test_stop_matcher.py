"""Stop strings are found wherever the text is cut, and never leak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.stop_matcher import StopMatcher


def run(stops: list[str], parts: list[str]) -> tuple[str, bool]:
    matcher = StopMatcher(stops)
    text = ""
    for part in parts:
        text += matcher.push(part)
        if matcher.stopped:
            return text, True
    return text + matcher.flush(), False


@pytest.mark.parametrize(
    ("stops", "text", "expected"),
    [
        (["END"], "one END two", "one "),
        (["END"], "one EN", "one EN"),
        (["abcd", "bc"], "xabcd", "xa"),
        (["bc", "abc"], "xabc", "x"),
        (["aab"], "aaab", "a"),
        (["\n\n"], "a\n\n\nb", "a"),
        (["👩\u200d🚀"], "go 👩\u200d🚀!", "go "),
        ([], "anything", "anything"),
    ],
)
def test_text_ends_before_the_stop_when_cut_anywhere(
    stops: list[str], text: str, expected: str
) -> None:
    """Every way to cut the text in two gives what the whole text gives."""
    for cut in range(len(text) + 1):
        assert run(stops, [text[:cut], text[cut:]])[0] == expected


@given(
    stops=st.lists(st.text("ab", min_size=1, max_size=4), max_size=4),
    parts=st.lists(st.text("abc", max_size=5), max_size=8),
)
def test_result_is_the_definition_when_text_and_stops_are_random(
    stops: list[str], parts: list[str]
) -> None:
    """The first stop string to be complete ends the text, the longest if several are."""
    text = "".join(parts)
    expected, stopped = text, False
    for end in range(len(text) + 1):
        if found := [stop for stop in stops if text[:end].endswith(stop)]:
            expected, stopped = text[: end - max(map(len, found))], True
            break
    assert run(stops, parts) == (expected, stopped)


@given(stop=st.text("ab", min_size=1, max_size=4), parts=st.lists(st.text("abc", max_size=5)))
def test_no_more_is_held_than_may_become_a_stop_when_text_comes(
    stop: str, parts: list[str]
) -> None:
    """Text is let through as soon as it can be no part of a stop string."""
    matcher = StopMatcher([stop])
    seen = given_out = ""
    for part in parts:
        seen += part
        given_out += matcher.push(part)
        if matcher.stopped:
            return
        held = seen[len(given_out) :]
        assert stop.startswith(held)
        assert given_out + held == seen
