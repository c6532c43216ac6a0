"""Labels: what one carries, and which of several verdicts on a pair counts."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_layer.calibration.labels import Label, by_intent, of_scorer, settled


def label(label_id: str = "l", **more: Any) -> Label:
    fields: dict[str, Any] = {
        "label_id": label_id,
        "intent": "factual",
        "score": 0.9,
        "right": True,
        "source": "shadow",
        "served": True,
        "at": 1.0,
    }
    return Label(**fields | more)


def test_label_is_the_same_when_it_went_through_a_store() -> None:
    """Nothing of it is lost in msgpack or JSON."""
    one = label(tenant="t", weight=20, entry_id="e", request_id="r", scorer="s", text="a")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=Label) == one
    assert msgspec.json.decode(msgspec.json.encode(one), type=Label) == one


@pytest.mark.parametrize(
    "bad", [{"score": 1.5}, {"score": -0.1}, {"weight": 0.5}, {"source": "rumour"}]
)
def test_label_is_refused_when_a_number_is_out_of_range(bad: dict[str, object]) -> None:
    """A weight is one over a probability, a score a probability, a source a known one."""
    raw = msgspec.to_builtins(label()) | bad
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(raw, type=Label)


def test_scores_of_another_scorer_are_left_out() -> None:
    """A threshold is about one scorer's numbers."""
    labels = [label("1", scorer="old"), label("2", scorer="new")]
    assert of_scorer(labels, "new") == labels[1:]


def test_person_beats_comparison_when_both_judged_a_pair() -> None:
    """A reviewer's verdict stays, however late the next comparison comes."""
    pair = {"text": "a", "entry_id": "e"}
    labels = [
        label("1", at=1, right=False, source="review", **pair),
        label("2", at=2, weight=20, served=False, **pair),
    ]
    (one,) = settled(labels)
    assert (one.label_id, one.right, one.weight, one.served) == ("1", False, 1, True)


def test_later_verdict_counts_when_the_sources_are_alike() -> None:
    """People change their minds."""
    pair = {"text": "a", "entry_id": "e", "source": "feedback"}
    (one,) = settled([label("2", at=2, right=False, **pair), label("1", at=1, **pair)])
    assert one.right is False


def test_silent_hits_add_up_when_a_pair_is_spoken_of_again() -> None:
    """The hits before the first word were served all the same."""
    pair = {"text": "a", "entry_id": "e"}
    labels = [
        label("1", at=1, source="feedback", silent=7, **pair),
        label("2", at=2, source="review", **pair),
    ]
    assert settled(labels)[0].silent == 7


def test_labels_that_name_no_pair_count_by_themselves() -> None:
    """Two anonymous rows of a file are two."""
    assert len(settled([label("1"), label("2")])) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.booleans())))
def test_settling_is_done_when_done_once(rows: list[tuple[str, str, bool]]) -> None:
    """Each pair is there once, and settling again changes nothing."""
    labels = [
        label(str(i), text=text, entry_id=entry, right=right, at=i)
        for i, (text, entry, right) in enumerate(rows)
    ]
    once = settled(labels)
    assert len(once) == len({row[:2] for row in rows})
    assert settled(once) == once
    assert sum(len(group) for group in by_intent(once).values()) == len(once)
