"""Lines found by shared words are those that a comparison of each with each finds."""

from hypothesis import given
from hypothesis import strategies as st

from semantic_layer.chats.by_words import ByWords
from semantic_layer.chats.remains import twins_of

LINES = st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=4), max_size=8)


@given(LINES, st.frozensets(st.sampled_from("abcdefg"), max_size=5))
def test_alike_lines_are_found_when_half_the_fewer_words_are_shared(
    lines: list[frozenset[str]], words: frozenset[str]
) -> None:
    """Each line that shares enough is found once, with the number of words; no other is."""
    expected = [
        (at, len(words & line))
        for at, line in enumerate(lines)
        if 2 * len(words & line) >= min(len(words), len(line)) and bool(words) == bool(line)
    ]
    assert ByWords(lines).alike(words) == expected
    assert ByWords(lines).has_alike(words) == bool(expected)


def test_most_alike_lines_are_twins_when_several_share_words() -> None:
    """Each line has one twin at most; the first of equals is taken, numbers may differ."""
    one = ["The red parcel weighs 4 kg", "The blue parcel is late"]
    other = ["The parcel is blue and late", "The red parcel weighs 5 kg", "Paris is large"]
    found = [(twin.one, twin.other, twin.is_close) for twin in twins_of(one, other)]
    assert found == [(one[0], other[1], True), (one[1], other[0], True)]
