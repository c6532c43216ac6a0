"""What a violation of a body's schema says."""

from typing import Any, Literal

import pytest
from msgspec import Struct

from gateway.errors import BadRequest
from gateway.wire.validation import convert


class Row(Struct, frozen=True):
    """One choice."""

    verdict: Literal["right", "wrong"] | None = None


class Rows(Struct, frozen=True):
    """Choices in a list and in an object."""

    rows: list[Row] = []
    named: dict[str, Row] = {}


@pytest.mark.parametrize(
    ("tree", "kind", "param"),
    [
        ({"verdict": "maybe"}, Row, "verdict"),
        ({"rows": [{}, {"verdict": "maybe"}]}, Rows, "rows[1].verdict"),
        ({"named": {"a": {"verdict": "maybe"}}}, Rows, "named.verdict"),
    ],
)
def test_allowed_values_are_named_when_a_value_is_none_of_them(
    tree: Any, kind: type[Struct], param: str
) -> None:
    """Who wrote a wrong word sees the right ones, wherever the field stands."""
    with pytest.raises(BadRequest) as caught:
        convert(tree, kind)
    problem = "invalid enum value 'maybe'; allowed are right, wrong"
    assert caught.value.message == f"{param}: {problem}"
    assert caught.value.param == param
