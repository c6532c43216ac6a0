"""``/dashboard/thresholds``: each intent's curve, and what another threshold would have done."""

from collections.abc import Sequence
from typing import Any

from litestar import Request, get
from litestar.params import FromPath
from litestar.response import Template
from msgspec import Struct

from gateway.admin.intents import curve_view, history_view, intents_view, replay_view
from gateway.api.connection import parts_of
from gateway.dashboard.charts import Plot, Spot, curve, named, round_top, steps
from gateway.dashboard.language import Messages
from gateway.dashboard.page import language_in, page
from gateway.dashboard.words import number, percent, threshold
from gateway.errors import NotFound
from gateway.parts import Parts
from gateway.wire.intent_admin import CurvePointView, CurveView, IntentView, Share
from gateway.wire.validation import convert

HTTP = Request[Any, Any, Any]
MAX_CHANGES = 20
MODES = ("auto", "manual", "off")
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


class Tried(Struct, frozen=True):
    """The threshold that is tried."""

    threshold: Share


@get("/thresholds")
async def thresholds_page(request: HTTP) -> Template:
    """Show all intents, and one of them to be tuned."""
    parts = parts_of(request.scope)
    intents = intents_view(parts).intents
    intent = _chosen(intents, request.query_params.get("intent"))
    seen = await curve_view(parts, intent.name)
    points = [point for point in seen.points if point.labels]
    return page(
        request,
        "thresholds.html",
        active="thresholds",
        intents=intents,
        intent=intent,
        modes=MODES,
        points=points,
        against=_against(points, seen, Messages(language_in(request))),
        along=_along(points, seen),
        changes=(await history_view(parts, intent.name, MAX_CHANGES)).changes,
    )


@get("/thresholds/{name:str}/preview")
async def preview(request: HTTP, name: FromPath[str]) -> Template:
    """Show what a threshold would have done to recorded traffic; nothing is changed."""
    parts = parts_of(request.scope)
    _chosen(intents_view(parts).intents, name)
    asked = {"threshold": request.query_params.get("threshold") or None}
    tried = asked["threshold"] and convert(asked, Tried, strict=False).threshold
    return page(
        request,
        "preview.html",
        playback=None if tried is None else await replay_view(parts, name, float(tried)),
        point=None if tried is None else await _point_at(parts, name, float(tried)),
    )


async def _point_at(parts: Parts, name: str, threshold: float) -> CurvePointView | None:
    """Return the curve's point that is just as strict as a threshold, or a little stricter."""
    points = (await curve_view(parts, name)).points
    stricter = [point for point in points if point.threshold >= threshold and point.labels]
    return min(stricter, key=lambda point: point.threshold, default=None)


def _chosen(intents: Sequence[IntentView], name: str | None) -> IntentView:
    """Return the intent of a name, else the one that labels say most of."""
    if name is None:
        return max(intents, key=lambda intent: intent.labels.count)
    found = next((intent for intent in intents if intent.name == name), None)
    if found is None:
        raise NotFound(f"there is no intent {name!r}", param="intent")
    return found


def _against(points: Sequence[CurvePointView], seen: CurveView, t: Messages) -> Plot:
    """Plot the served share (across) against the wrong share (up)."""
    top = min(round_top(max((point.high for point in points), default=seen.budget)), 1.0)
    spots = [_spot(point, top) for point in points]
    stricter = [p for p in points if p.threshold >= seen.threshold]
    now = _spot(stricter[-1], top) if stricter else None
    return Plot(
        curve(spots, seen.budget / top, now),
        [percent(top * share, 1) for share in (1.0, 0.5, 0.0)],
        [percent(share, 0) for share in _QUARTERS],
        named(spots, [_names(point, t) for point in points]),
    )


def _names(point: CurvePointView, t: Messages) -> tuple[str, str]:
    """Return a point's threshold and labels: in short, and in a sentence with its shares."""
    at, labels = threshold(point.threshold), number(point.labels)
    long = t(
        "thresholds.spot",
        threshold=at,
        labels=labels,
        served=percent(point.hit_share),
        wrong=percent(point.wrong_share),
        low=percent(point.low),
        high=percent(point.high),
    )
    return t("thresholds.spot_short", threshold=at, labels=labels), long


def _along(points: Sequence[CurvePointView], seen: CurveView) -> Plot:
    """Plot the served and the wrong share (up) along the threshold (across)."""
    lines = {
        "served": [(point.threshold, point.hit_share) for point in points],
        "wrong": [(point.threshold, point.wrong_share) for point in points],
    }
    marks = {"now": seen.threshold, "tried": seen.threshold}
    ticks = [percent(share, 0) for share in (1.0, 0.5, 0.0)]
    return Plot(steps(lines, marks, seen.budget), ticks, [f"{share:g}" for share in _QUARTERS])


def _spot(point: CurvePointView, top: float) -> Spot:
    wrong, low, high = (
        min(share / top, 1.0) for share in (point.wrong_share, point.low, point.high)
    )
    return Spot(point.hit_share, wrong, low, high)
