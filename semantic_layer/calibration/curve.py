"""What other thresholds would do: over labelled traffic, and over recorded decisions. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from semantic_layer.calibration import betting
from semantic_layer.calibration.labels import Label, of_scorer, settled
from semantic_layer.calibration.sample import Sample
from semantic_layer.calibration.walk import grid

_EVERY = 4  # steps of the walk between two points of a curve


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What serving at a threshold comes to; shares in 0..1, bounds with 95% confidence each.

    ``served_share`` is of labelled traffic, ``wrong_share`` of what would be served; ``num`` counts
    the labels behind it.
    """

    threshold: float
    served_share: float
    wrong_share: float
    low: float
    high: float
    num: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """A past decision: the best candidate's score, whether it was served, and what is known."""

    request_id: str
    score: float
    served: bool
    right: bool | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """What another threshold would have changed, by the ids of requests.

    ``known_*`` count, among them, the answers that are known to have been right or wrong.
    """

    num_decisions: int
    hits_before: int
    hits_after: int
    new_hits: tuple[str, ...]
    lost_hits: tuple[str, ...]
    known_right_new: int
    known_wrong_new: int
    known_right_lost: int
    known_wrong_lost: int


def threshold_curve(
    labels: Iterable[Label], *, scorer: str, thresholds: Sequence[float] | None = None
) -> list[CurvePoint]:
    """Return what each threshold would come to, strict to loose."""
    sample = Sample.of(settled(of_scorer(labels, scorer)))
    total = float(sample.weight.sum())
    points = []
    for threshold in sorted(thresholds or grid()[::_EVERY].tolist(), reverse=True):
        served = sample.served_at(threshold)
        draws = served.draws()
        points.append(
            CurvePoint(
                threshold=float(threshold),
                served_share=float(served.weight.sum()) / total if total else 0.0,
                wrong_share=draws.share,
                low=betting.lower_bound(draws),
                high=betting.upper_bound(draws),
                num=len(served),
            )
        )
    return points


def replay(decisions: Iterable[Recorded], threshold: float) -> Replay:
    """Return what would have changed had this been the threshold."""
    past = list(decisions)
    new = [one for one in past if not one.served and one.score >= threshold]
    lost = [one for one in past if one.served and one.score < threshold]
    before = sum(one.served for one in past)
    return Replay(
        num_decisions=len(past),
        hits_before=before,
        hits_after=before + len(new) - len(lost),
        new_hits=tuple(one.request_id for one in new),
        lost_hits=tuple(one.request_id for one in lost),
        known_right_new=sum(one.right is True for one in new),
        known_wrong_new=sum(one.right is False for one in new),
        known_right_lost=sum(one.right is True for one in lost),
        known_wrong_lost=sum(one.right is False for one in lost),
    )
