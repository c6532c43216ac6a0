"""Events survive any cut of the byte stream."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.backends import sse
from gateway.backends.sse import SseParser
from gateway.errors import BackendError

TEXT = "晚安🌙 café Ω 你好👩‍🚀 e\u0301"


def parsed(*chunks: bytes) -> list[bytes]:
    parser = SseParser()
    return [*(data for chunk in chunks for data in parser.feed(chunk)), *parser.close()]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_events_are_whole_when_cut_at_every_byte(line_end: str) -> None:
    """A cut inside a character, a line break or a field name changes nothing."""
    stream = line_end.join(
        [f"\ufeffdata: {TEXT}", "", ": hello", "event: x", "data:two", "data: lines", "", ""]
    ).encode()
    expected = [TEXT.encode(), b"two\nlines"]
    for cut in range(len(stream) + 1):
        assert parsed(stream[:cut], stream[cut:]) == expected
    assert parsed(*(bytes([byte]) for byte in stream)) == expected


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), min_size=1),
    st.data(),
)
def test_events_are_whole_when_cut_many_times(texts: list[str], data: st.DataObject) -> None:
    """Any texts come back from any division of their stream into reads."""
    stream = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parsed(*chunks) == [text.encode() for text in texts]


def test_data_lines_are_joined_when_an_event_has_several() -> None:
    """Lines of one event are joined by a line break, a single leading space removed."""
    assert parsed(b"data: a\ndata:  b\ndata\n\n") == [b"a\n b\n"]


def test_nothing_is_given_when_there_are_only_comments_and_blank_lines() -> None:
    """Keep-alive comments, foreign fields and empty lines are no events."""
    assert parsed(b": ping\n\n\n\nevent: done\n\nretry: 5\n\ndatabase: x\n\n") == []


def test_last_event_is_given_when_its_blank_line_is_missing() -> None:
    """A server that ends right after its last line is understood."""
    assert parsed(b"data: a\n\ndata: [DONE]") == [b"a", b"[DONE]"]
    assert parsed(b"data: a\n\ndata: [DONE]\n") == [b"a", b"[DONE]"]


@pytest.mark.parametrize("stream", [b"data: " + b"x" * 200, b"data: xxxxxxxxxxxx\n" * 20])
def test_stream_is_refused_when_an_event_never_ends(
    stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded by an event's largest size, whether its lines end or not."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(BackendError, match="more than 100 bytes"):
        parsed(*(stream[i : i + 7] for i in range(0, len(stream), 7)))
