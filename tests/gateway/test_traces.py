"""Traces: what is not there costs nothing, and what is asked for and missing is said."""

import sys

import pytest

from gateway.app import create_app
from gateway.setting_sections import TraceSettings
from gateway.settings import Settings, SettingsError
from gateway.traces import Untraced, open_traces


def test_nothing_is_in_the_way_when_traces_are_off() -> None:
    """App, stages and jobs are those of a gateway that knows no traces, and no library is read."""
    traces = open_traces(TraceSettings())
    given = object()
    assert isinstance(traces, Untraced)
    assert traces.app(given) is given  # type: ignore[arg-type, comparison-overlap]
    assert traces.observe(given) is given  # type: ignore[arg-type, comparison-overlap]
    assert traces.carried(given) is given  # type: ignore[arg-type, comparison-overlap]


def test_the_start_names_the_extra_when_the_library_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The setting, what is missing and how to get it stand in one line."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "gateway.otel", raising=False)
    settings = Settings(traces=TraceSettings(endpoint="http://127.0.0.1:4318/v1/traces"))
    with pytest.raises(SettingsError, match=r"STRATA_TRACES__ENDPOINT.*strata-gateway\[otel\]"):
        create_app(settings)
