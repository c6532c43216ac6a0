"""``/admin/labels``: verdicts on pairs that were judged elsewhere."""

import time
from hashlib import blake2b
from typing import Annotated, Any
from uuid import uuid4

from litestar import Request, post
from msgspec import Meta, Struct

from gateway.api.connection import parts_of, read_body
from gateway.errors import BackendUnavailable
from gateway.wire.validation import convert, decode_object, wrong
from semantic_layer import Label, StoreUnavailable

MOST_LABELS = 1_000  # of one call
Text = Annotated[str, Meta(max_length=8_000)]
Name = Annotated[str, Meta(min_length=1, max_length=100)]


class LabelRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict on two texts and the score they were given; ``a`` is the stored text.

    A label takes the place of an earlier one of its ``id``, or else of its texts.
    """

    score: Annotated[float, Meta(ge=0, le=1)]
    right: bool
    a: Text = ""
    b: Text = ""
    intent: Name = "general"
    weight: Annotated[float, Meta(ge=1, le=1e6)] = 1.0
    id: Name | None = None


class LabelsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Labels, and the fingerprint of what scored them, where it is known."""

    labels: Annotated[list[LabelRow], Meta(min_length=1, max_length=MOST_LABELS)]
    scorer: Name | None = None


class LabelsResult(Struct, frozen=True):
    """How many labels were kept."""

    imported: int


@post("/labels", status_code=200)
async def import_labels(request: Request[Any, Any, Any]) -> LabelsResult:
    """Learn from pairs that were judged elsewhere, as from the gateway's own labels."""
    parts = parts_of(request.scope)
    body = convert(decode_object(await read_body(request.scope, request.receive)), LabelsBody)
    scorer = parts.cache.scorer
    if body.scorer not in (None, scorer):
        raise wrong("scorer", f"these scores are of {body.scorer}; this gateway has {scorer}")
    known = parts.cache.thresholds.priors
    for at, row in enumerate(body.labels):
        if row.intent not in known:
            raise wrong(f"labels[{at}].intent", f"{row.intent!r} is none of {', '.join(known)}")
    try:
        for row in body.labels:
            await parts.evidence.labels.add(_label(row, scorer, time.time()))
    except StoreUnavailable as error:
        raise BackendUnavailable(str(error), code="store_unavailable") from error
    return LabelsResult(len(body.labels))


def _label(row: LabelRow, scorer: str, now: float) -> Label:
    return Label(
        label_id=f"import:{row.id or _id_of(row)}",
        intent=row.intent,
        score=row.score,
        right=row.right,
        source="import",
        served=False,
        at=now,
        weight=row.weight,
        scorer=scorer,
        text=row.b,
        stored_text=row.a,
    )


def _id_of(row: LabelRow) -> str:
    if not (row.a and row.b):
        return uuid4().hex
    said = f"{row.intent}\0{row.a}\0{row.b}".encode("utf-8", "surrogatepass")
    return blake2b(said, digest_size=12).hexdigest()
