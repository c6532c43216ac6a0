"""Labels: what is known of whether a stored answer was right for another text. Pure.

Knows no store; a label keeps its source, and the scorer whose score it judges.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

LabelSource = Literal["feedback", "review", "shadow", "gray", "import"]
_AUTHORITY: Mapping[LabelSource, int] = MappingProxyType(
    {"review": 4, "feedback": 3, "import": 2, "shadow": 1, "gray": 0}
)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Weight = Annotated[float, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Label(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One verdict on one pair.

    ``score`` is what the scorer named by ``scorer`` (a fingerprint) gave the pair. ``served`` says
    that a client got the stored answer. ``weight`` is one over the probability with which the pair
    was sampled. ``silent`` is how many hits of the intent nobody had a word for since the feedback
    before: a complaint is one of that many. ``at`` is Unix seconds. ``method`` is how the two
    answers were compared, ``note`` what a person said of them.
    """

    label_id: str
    intent: str
    score: Share
    right: bool
    source: LabelSource
    served: bool
    at: float
    tenant: str = "public"
    weight: Weight = 1.0
    silent: Count = 0
    entry_id: str = ""
    request_id: str = ""
    scorer: str = ""
    text: str = ""
    stored_text: str = ""
    method: str = ""
    note: str = ""


def of_scorer(labels: Iterable[Label], scorer: str) -> list[Label]:
    """Return the labels whose score this scorer gave; another's scores mean something else."""
    return [label for label in labels if label.scorer == scorer]


def settled(labels: Iterable[Label]) -> list[Label]:
    """Return one label per judged pair, oldest first.

    A person's verdict beats a comparison's, a later one an earlier one. A pair is an entry and the
    text (or else the request) it was judged for; what names neither counts by itself. The weight
    is the least of all: a pair that had several chances was likelier to be sampled. Silent hits
    add up.
    """
    kept: dict[tuple[str, ...], Label] = {}
    for label in sorted(labels, key=lambda label: label.at):
        pair = _pair(label)
        before = kept.get(pair)
        kept[pair] = label if before is None else _stronger(before, label)
    return sorted(kept.values(), key=lambda label: label.at)


def sampled(labels: Iterable[Label]) -> list[Label]:
    """Return the labels of pairs that chance or a reviewer picked, not the one who complained."""
    return [label for label in labels if label.source != "feedback"]


def reported(labels: Iterable[Label]) -> list[Label]:
    """Return what people said of answers that they were served; it is of all hits, told or not."""
    return [label for label in labels if label.source == "feedback" and label.served]


def by_intent(labels: Iterable[Label]) -> dict[str, list[Label]]:
    """Return the labels by the intent they were judged under."""
    groups: dict[str, list[Label]] = {}
    for label in labels:
        groups.setdefault(label.intent, []).append(label)
    return groups


def _pair(label: Label) -> tuple[str, ...]:
    asked, stored = label.text or label.request_id, label.entry_id or label.stored_text
    if not (asked and stored):
        return (label.label_id,)
    return (label.tenant, label.intent, label.scorer, asked, stored)


def _stronger(before: Label, label: Label) -> Label:
    winner = label if _AUTHORITY[label.source] >= _AUTHORITY[before.source] else before
    return msgspec.structs.replace(
        winner,
        weight=min(before.weight, label.weight),
        served=before.served or label.served,
        silent=before.silent + label.silent,
    )
