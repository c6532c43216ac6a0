"""Places with several names: found in both texts, and cheaply where there is none."""

import pytest

from semantic_layer.comparison import places
from semantic_layer.comparison.places import share_renamed


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("How many people live in the PRC?", "How many people live in China?", True),
        ("How many people live in China?", "What is the population of the PRC?", True),
        ("How many people live in China?", "How many people live in Peru?", False),
        ("How do I bake bread?", "How many people live in China?", False),
    ],
)
def test_place_is_shared_when_both_texts_name_it(one: str, other: str, is_shared: bool) -> None:
    """By whatever name."""
    assert share_renamed(one, other) is is_shared


def test_second_text_is_not_read_when_the_first_names_no_such_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look-up asks this of each entry that lies a little too far: reading them all costs most."""
    read: list[str] = []
    analyse = places.analyse
    monkeypatch.setattr(places, "analyse", lambda text: read.append(text) or analyse(text))
    assert not share_renamed("How do I bake bread?", "How many people live in China?")
    assert read == ["How do I bake bread?"]
