"""Where two questions differ."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.dashboard.differences import MAX_WORDS, differences


def marked(one: str, other: str) -> tuple[list[str], list[str]]:
    left, right = differences(one, other)
    return [p.text for p in left if p.differs], [p.text for p in right if p.differs]


def test_only_the_words_that_differ_are_marked() -> None:
    """Case and what is alike are not."""
    assert marked("The capital of Spain?", "the capital of France?") == (["Spain"], ["France"])
    assert marked("法国的首都是哪里", "德国的首都是哪里") == (["法"], ["德"])
    assert marked("the same", "the same") == ([], [])
    assert marked("", "all") == ([], ["all"])


def test_long_texts_are_not_compared() -> None:
    """A page never waits for them."""
    assert marked("a " * MAX_WORDS, "b " * MAX_WORDS) == ([], [])


@given(st.text(max_size=60), st.text(max_size=60))
def test_pieces_are_the_whole_text_whatever_it_is(one: str, other: str) -> None:
    """Nothing is lost or added."""
    left, right = differences(one, other)
    assert "".join(piece.text for piece in left) == one
    assert "".join(piece.text for piece in right) == other
