"""What a trace is told of a request on its way; without a collector nobody listens.

Knows no tracing library: `gateway.otel` is the only file that does.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from litestar.types import ASGIApp

from gateway.record import RequestRecord
from gateway.setting_sections import TraceSettings
from gateway.settings_tree import SettingsError

Job = Callable[[], Awaitable[object]]
Observe = Callable[[str, float], None]
TraceHeaders = Mapping[str, str]
_NOTHING: TraceHeaders = {}


class Traces(Protocol):
    """Follows requests through the gateway; never raises and never waits."""

    def app(self, app: ASGIApp) -> ASGIApp:
        """Return the app with a span around every request."""
        ...

    def observe(self, otherwise: Observe) -> Observe:
        """Return what hears of stages of the current request, by name and seconds, and tells on."""
        ...

    def phase(self, name: str, seconds: float, ago_s: float) -> None:
        """Hear of a phase of the current generation that ended ``ago_s`` ago."""
        ...

    def generating(
        self, backend: str, model: str, api: str, *, is_remote: bool
    ) -> AbstractContextManager[TraceHeaders]:
        """Follow one generation; gives the headers that tell the backend of the trace."""
        ...

    def answered(self, upstream: str, status: str) -> None:
        """Hear how one try at an upstream was answered."""
        ...

    def record(self, record: RequestRecord) -> None:
        """Hear what became of the current request."""
        ...

    def carried(self, job: Job) -> Job:
        """Return a job that belongs to the current request, wherever it runs."""
        ...

    async def close(self) -> None:
        """Send what waits, for a moment."""
        ...


class Untraced:
    """No traces, and no cost."""

    def app(self, app: ASGIApp) -> ASGIApp:
        """Return the app as it is."""
        return app

    def observe(self, otherwise: Observe) -> Observe:
        """Return the other listener alone."""
        return otherwise

    def phase(self, name: str, seconds: float, ago_s: float) -> None:
        """Forget it."""

    def generating(
        self,
        backend: str,  # noqa: ARG002 - the protocol's
        model: str,  # noqa: ARG002
        api: str,  # noqa: ARG002
        *,
        is_remote: bool,  # noqa: ARG002
    ) -> AbstractContextManager[TraceHeaders]:
        """Follow nothing."""
        return nullcontext(_NOTHING)

    def answered(self, upstream: str, status: str) -> None:
        """Forget it."""

    def record(self, record: RequestRecord) -> None:
        """Forget it."""

    def carried(self, job: Job) -> Job:
        """Return the job as it is."""
        return job

    async def close(self) -> None:
        """Do nothing."""


def open_traces(settings: TraceSettings) -> Traces:
    """Return what follows requests, as far as the settings name a collector.

    Raises:
        SettingsError: the extra is not installed.
    """
    if settings.endpoint is None:
        return Untraced()
    try:
        from gateway.otel import OtelTraces  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise SettingsError(
            "traces.endpoint (STRATA_TRACES__ENDPOINT): OpenTelemetry is not installed "
            f"({error.name}); install it by: pip install 'strata-gateway[otel]'"
        ) from error
    return OtelTraces(settings)
