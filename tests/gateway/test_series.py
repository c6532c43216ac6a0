"""Traffic by the minute."""

from gateway.backends.base import Usage
from gateway.record import CacheOutcome, RequestRecord
from gateway.series import MAX_MINUTES, TrafficSeries


def request(outcome: CacheOutcome) -> RequestRecord:
    return RequestRecord(
        request_id="r",
        route="/v1/chat/completions",
        tenant="public",
        model="m",
        intent=None,
        outcome=outcome,
        end="ok",
        seconds=1.0,
        ttft_s=None,
        usage=Usage(10, 5, 0),
    )


def test_requests_stand_in_their_minutes_and_empty_ones_are_there() -> None:
    """Oldest first, the open minute last, with what was saved in it."""
    now = [6000.0]
    series = TrafficSeries(clock=lambda: now[0])
    series.record(request("miss"))
    now[0] += 120
    series.record(request("exact"))
    series.record(request("exact"))
    spans = series.spans(4)
    assert [span.at for span in spans] == [5940, 6000, 6060, 6120]
    assert [span.outcomes for span in spans] == [{}, {"miss": 1}, {}, {"exact": 2}]
    assert spans[-1].tokens_saved == {"exact": 30}


def test_spans_sum_to_the_minutes_when_steps_are_longer() -> None:
    """Nothing is counted twice or left out inside the period."""
    now = [6000.0]
    series = TrafficSeries(clock=lambda: now[0])
    for _ in range(30):
        series.record(request("miss"))
        now[0] += 60
    now[0] -= 60
    spans = series.spans(30, 7)
    assert sum(span.outcomes.get("miss", 0) for span in spans) >= 30 - 6
    assert {span.at % (7 * 60) for span in spans} == {0}


def test_memory_is_bounded_when_it_runs_for_long() -> None:
    """The last day is kept."""
    now = [0.0]
    series = TrafficSeries(clock=lambda: now[0])
    for _ in range(MAX_MINUTES + 100):
        series.record(request("miss"))
        now[0] += 60
    assert len(series._minutes) == MAX_MINUTES
