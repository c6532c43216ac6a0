"""``/dashboard``: in one look, what the caches save and how often a hit is wrong."""

from collections.abc import Sequence
from typing import Any

from litestar import Request, get
from litestar.response import Template

from gateway.admin.stats import series_view, traffic_view
from gateway.api.connection import parts_of
from gateway.dashboard.charts import Plot, bars, round_top, share_bar
from gateway.dashboard.page import page
from gateway.dashboard.words import clock, short
from gateway.errors import BadRequest
from gateway.series import Span
from semantic_layer import LEAST_AGAINST

OUTCOMES = ("exact", "semantic", "miss", "bypass", "error", "aborted", "rejected")
PERIODS = {"60": 1, "360": 6, "1440": 24}  # minutes, and how many of them make one bar
SAVING = ("exact", "semantic", "flight", "prefix")


@get("/")
async def overview(request: Request[Any, Any, Any]) -> Template:
    """Show the traffic, the savings, the wrong-hit estimate and the state of the parts."""
    parts = parts_of(request.scope)
    minutes = request.query_params.get("minutes", "60")
    if minutes not in PERIODS:
        raise BadRequest(f"minutes: expected one of {', '.join(PERIODS)}", param="minutes")
    stats = await traffic_view(parts)
    wrong, budget = stats["wrong_hits"].get("all"), parts.settings.semantic.wrong_hit_budget
    spans = series_view(parts, int(minutes), PERIODS[minutes]).spans
    seen = [kind for kind in OUTCOMES if any(kind in span.outcomes for span in spans)]
    return page(
        request,
        "overview.html",
        active="overview",
        live=4,
        stats=stats,
        wrong=wrong,
        is_beyond=wrong is not None and wrong["labels"] >= LEAST_AGAINST and wrong["low"] > budget,
        by_intent={k: v for k, v in stats["wrong_hits"].items() if k != "all"},
        budget=budget,
        spans=[span for span in spans if span.outcomes],
        seen=seen,
        traffic=_traffic(spans, seen),
        shares=share_bar({kind: stats["outcomes"].get(kind, 0) for kind in OUTCOMES}),
        outcomes=[kind for kind in OUTCOMES if stats["outcomes"].get(kind)],
        saving=[layer for layer in SAVING if stats["tokens_saved"].get(layer)],
        periods=list(PERIODS),
        minutes=minutes,
    )


def _traffic(spans: Sequence[Span], kinds: Sequence[str]) -> Plot:
    top = round_top(max((sum(span.outcomes.values()) for span in spans), default=0))
    drawing = bars([span.outcomes for span in spans], kinds, top)
    ticks = [short(top), short(top / 2) if top > 1 else "", "0"]
    ends = (spans[0], spans[len(spans) // 2], spans[-1])
    return Plot(drawing, ticks, [clock(span.at) for span in ends])
