"""The admin API of a running gateway, as the command line uses it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import httpx

from gateway.address import url_of
from gateway.cli.errors import AdminApiError
from gateway.settings import Settings

_TIMEOUT_S = 300.0  # a batch of rows is embedded before it is answered
_PAGE_ROWS = 100
_BUSY = 503
_RETRIES = 5
_PAUSE_S = 2.0

Row = dict[str, Any]


class StoreBusy(AdminApiError):
    """A store was slow or down."""


class AdminClient:
    """Speaks to one gateway; a context manager.

    Args:
        settings: say where the gateway listens and what its admin key is.
        url: another gateway than that of the settings.
    """

    def __init__(self, settings: Settings, url: str | None = None) -> None:
        self.url = url or url_of(settings.host, settings.port)
        headers = {"x-strata-admin-key": settings.admin_key} if settings.admin_key else {}
        try:
            self._http = httpx.Client(
                base_url=self.url, headers=headers, timeout=_TIMEOUT_S, trust_env=False
            )
        except httpx.InvalidURL as error:
            raise AdminApiError(f"{self.url} is no URL: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def import_rows(self, rows: Sequence[Row]) -> Row:
        """Store a batch of rows; returns ``imported`` and ``errors`` by index.

        Raises:
            AdminApiError: the gateway could not be asked, or refused the batch.
        """
        return self._ask("POST", json=list(rows))

    def entries(self, selection: dict[str, str]) -> Iterator[Row]:
        """Give every selected entry, newest first.

        Raises:
            AdminApiError: the gateway could not be asked, or refused the selection.
        """
        query = {**selection, "limit": str(_PAGE_ROWS)}
        while True:
            page = self._ask("GET", params=query)
            yield from page["entries"]
            if not page.get("cursor"):
                return
            query["cursor"] = page["cursor"]

    def warm(self, requests: Sequence[Row], how: Row) -> Row:
        """Compute the prompts of a batch of chat requests; returns counts and errors by index.

        Raises:
            AdminApiError: the gateway could not be asked, or refused the batch.
        """
        return self._ask("POST", "/admin/prefix/warm", json={"requests": list(requests), **how})

    def unpin(self) -> Row:
        """Pin nothing any more; returns the blocks let go.

        Raises:
            AdminApiError: the gateway could not be asked, or has no local model.
        """
        return self._ask("DELETE", "/admin/prefix/pins")

    def intents(self) -> list[Row]:
        """Return every intent as it is in force.

        Raises:
            AdminApiError: the gateway could not be asked, or refused.
        """
        return list(self._ask("GET", "/admin/intents")["intents"])

    def teach(self, labels: Sequence[Row], scorer: str | None) -> int:
        """Give a batch of labels; returns how many were taken.

        Raises:
            AdminApiError: the gateway could not be asked, or has another ``scorer``.
        """
        body = {"labels": list(labels), "scorer": scorer}
        return int(self._ask("POST", "/admin/labels", json=body)["imported"])

    @contextmanager
    def backup(self, *, with_requests: bool) -> Iterator[Iterator[bytes]]:
        """Give the bytes of a backup, as they come.

        Raises:
            AdminApiError: the gateway could not be asked, refused, or stopped half-way.
        """
        query = {"requests": "1"} if with_requests else {}
        try:
            with self._http.stream("GET", "/admin/backup", params=query) as response:
                if not response.is_success:
                    response.read()
                    raise self._refused(response)
                yield response.iter_bytes()
        except (httpx.TransportError, httpx.UnsupportedProtocol) as error:
            raise self._unanswered(error) from error

    def restore(self, lines: Sequence[bytes]) -> Row:
        """Write some lines of a backup; returns the counts. A store that is busy is asked again.

        Raises:
            AdminApiError: the gateway could not be asked, or refused the lines.
        """
        body = b'{"lines":[' + b",".join(lines) + b"]}"
        headers = {"content-type": "application/json"}
        for _ in range(_RETRIES):
            try:
                return self._ask("POST", "/admin/restore", content=body, headers=headers)
            except StoreBusy:
                time.sleep(_PAUSE_S)
        return self._ask("POST", "/admin/restore", content=body, headers=headers)

    def doctor(self) -> Row:
        """Return the findings about the gateway and its traffic.

        Raises:
            AdminApiError: the gateway could not be asked, or refused.
        """
        return self._ask("GET", "/admin/doctor")

    def _ask(self, method: str, route: str = "/admin/cache/entries", **request: Any) -> Row:
        try:
            response = self._http.request(method, route, **request)
        except (httpx.TransportError, httpx.UnsupportedProtocol) as error:
            raise self._unanswered(error) from error
        if response.is_success:
            return dict(response.json())
        raise self._refused(response)

    def _unanswered(self, error: Exception) -> AdminApiError:
        return AdminApiError(
            f"no gateway answers on {self.url} ({error}); start one by `strata serve`, "
            "or name another by --url"
        )

    def _refused(self, response: httpx.Response) -> AdminApiError:
        kind = StoreBusy if response.status_code == _BUSY else AdminApiError
        return kind(f"{self.url} answered {response.status_code}: {_reason(response)}")


def _reason(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.reason_phrase
