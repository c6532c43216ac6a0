"""A scripted admin API, for commands that talk to a running gateway."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class FakeAdminApi:
    """Keeps what is imported and gives it back in pages; rows with ``"bad"`` are refused."""

    def __init__(self, admin_key: str | None = None, page_rows: int = 3) -> None:
        self.admin_key = admin_key
        self.page_rows = page_rows
        self.batches: list[list[dict[str, Any]]] = []
        self.entries: list[dict[str, Any]] = []
        self.queries: list[dict[str, str]] = []
        self.warmed: list[dict[str, Any]] = []
        self.intents: list[dict[str, Any]] = []
        self.report: dict[str, Any] = {}
        self.taught: list[dict[str, Any]] = []
        self.url = ""

    def store(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        self.batches.append(rows)
        errors = [
            {"index": i, "message": "request: bad", "param": "request"}
            for i, row in enumerate(rows)
            if "bad" in row
        ]
        return {"imported": len(rows) - len(errors), "ids": [], "errors": errors}

    def warm(self, body: dict[str, Any]) -> dict[str, Any]:
        self.warmed.append(body)
        rows = body["requests"]
        errors = [
            {"index": i, "message": "bad row", "param": "x"}
            for i, r in enumerate(rows)
            if "bad" in r
        ]
        good = len(rows) - len(errors)
        counts = {"warmed": good, "computed_tokens": 7 * good, "cached_tokens": 3 * good}
        return {**counts, "results": [], "errors": errors}

    def teach(self, body: dict[str, Any]) -> dict[str, Any]:
        self.taught.append(body)
        return {"imported": len(body["labels"])}

    def browse(self, query: dict[str, str]) -> dict[str, Any]:
        self.queries.append(query)
        start = int(query.get("cursor", "0"))
        end = start + self.page_rows
        cursor = str(end) if end < len(self.entries) else None
        return {"entries": self.entries[start:end], "cursor": cursor}


@contextmanager
def serving(api: FakeAdminApi) -> Iterator[FakeAdminApi]:
    """Serve the fake on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            takers = {"/admin/prefix/warm": api.warm, "/admin/labels": api.teach}
            take = takers.get(self.path, api.store)
            self._answer(lambda: take(json.loads(body)))

        def do_GET(self) -> None:
            if self.path == "/admin/intents":
                self._answer(lambda: {"intents": api.intents})
            elif self.path == "/admin/doctor":
                self._answer(lambda: api.report)
            else:
                self._answer(lambda: api.browse(dict(parse_qsl(urlsplit(self.path).query))))

        def _answer(self, make: Any) -> None:
            allowed = api.admin_key in (None, self.headers.get("x-strata-admin-key"))
            refusal = {"error": {"message": "the admin key is missing or wrong"}}
            body = json.dumps(make() if allowed else refusal).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
