"""What is certain of JSON that was cut."""

import json
from typing import Any

import pytest

from gateway.wire.anthropic.partial_json import partial_object

WHOLE = {"a": [1, {"b": 'x,{}\\"]'}], "ü": {"c": None}, "d": "e"}


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("", {}),
        ("{", {}),
        ('{"a": "b"', {"a": "b"}),
        ('{"a": "b', {}),
        ('{"a": "b", "c', {"a": "b"}),
        ('{"a": {"b": [1, ', {"a": {"b": [1]}}),
        ('["a"', {}),
        ("nonsense", {}),
        ("[" * 100_000, {}),
        ('{"a":' * 100_000, {}),
        ("{," * 50_000, {}),
    ],
)
def test_longest_certain_part_is_given(text: str, certain: dict[str, Any]) -> None:
    """Values that are complete stay; names without one and open strings go; nothing hangs."""
    assert partial_object(text) == certain


def test_every_cut_gives_a_part_of_the_whole() -> None:
    """Wherever the text ends, what comes out is an object made of what stood before."""
    text = json.dumps(WHOLE, ensure_ascii=False)
    known = [partial_object(text[:end]) for end in range(len(text) + 1)]
    assert known[-1] == WHOLE
    sizes = [len(json.dumps(part)) for part in known]
    assert sizes == sorted(sizes)
