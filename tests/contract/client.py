"""A caller of a gateway, and its answers read by the letter of their formats."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

CHAT_MODEL = "smollm2-135m-instruct"


def until(met: Callable[[], Any], *, limit_s: float = 30, what: str = "") -> Any:
    """Ask again and again until the answer is true; return it."""
    deadline = time.monotonic() + limit_s
    while not (answer := met()):
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what or met}"
        time.sleep(0.05)
    return answer


@dataclass(frozen=True)
class Stream:
    """One streamed answer, read to its end."""

    status: int
    headers: httpx.Headers
    chunks: list[dict[str, Any]]
    is_done: bool

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [choice["delta"] for chunk in self.chunks for choice in chunk.get("choices", [])]

    @property
    def text(self) -> str:
        return "".join(delta.get("content") or "" for delta in self.deltas)

    @property
    def finish_reasons(self) -> list[str | None]:
        return [
            choice["finish_reason"] for chunk in self.chunks for choice in chunk.get("choices", [])
        ]

    @property
    def usages(self) -> list[dict[str, Any]]:
        return [chunk["usage"] for chunk in self.chunks if chunk.get("usage") is not None]

    @property
    def cache(self) -> str:
        return self.headers["x-strata-cache"]


def strict_json(text: str | bytes) -> Any:
    """Parse JSON as its standard has it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def parse_stream(status: int, headers: httpx.Headers, body: bytes) -> Stream:
    """Read an event stream; every event must be one ``data:`` line, ``[DONE]`` the last."""
    assert headers["content-type"].split(";")[0] == "text/event-stream", body
    assert body.endswith(b"\n\n"), body[-80:]
    events = body.decode().removesuffix("\n\n").split("\n\n")
    texts = [event.removeprefix("data: ") for event in events if not event.startswith(":")]
    assert all(event.startswith(("data: ", ":")) and "\n" not in event for event in events), events
    is_done = texts[-1] == "[DONE]"
    assert texts.count("[DONE]") == int(is_done)
    chunks = [strict_json(text) for text in (texts[:-1] if is_done else texts)]
    return Stream(status, headers, chunks, is_done)


class Client:
    """Speaks to one gateway as one caller."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, tenant: str | None = None
    ) -> None:
        self.url = url
        self.tenant = tenant
        self.http = httpx.Client(
            base_url=url, headers=dict(headers or {}), timeout=120, trust_env=False
        )

    def body(self, prompt: str | Sequence[Any], **fields: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        return {
            "model": CHAT_MODEL,
            "temperature": 0,
            "max_tokens": 24,
            "messages": messages,
            **fields,
        }

    def chat(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask for a whole answer; whatever status comes."""
        return self.http.post(
            "/v1/chat/completions", json=self.body(prompt, **fields), headers=dict(headers or {})
        )

    def answer(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask for a whole answer, which must come and, if it may, be in the cache afterwards."""
        response = self.chat(prompt, headers=headers, **fields)
        assert response.status_code == 200, response.text
        strict_json(response.text)
        return response

    def seed(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        """Ask, and wait until the answer is found in the cache."""
        response = self.answer(prompt, headers=headers, **fields)
        request = self.body(prompt, **fields)
        until(lambda: self.lookup(request, headers)["outcome"] == "exact", what="stored")
        return response

    def stream(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Stream:
        """Ask for a stream and read all of it."""
        response = self.chat(prompt, headers=headers, stream=True, **fields)
        return parse_stream(response.status_code, response.headers, response.content)

    def opened(
        self,
        prompt: str | Sequence[Any],
        *,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Any:
        """Ask for a stream to be read piece by piece; a context manager."""
        body = self.body(prompt, stream=True, **fields)
        return self.http.stream(
            "POST", "/v1/chat/completions", json=body, headers=dict(headers or {})
        )

    def lookup(
        self, request: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Dry-run the caches as this caller."""
        sent = {**dict(self.http.headers), **dict(headers or {})}
        relevant = {name: value for name, value in sent.items() if name.startswith("x-strata-")}
        more = {"tenant": self.tenant} if self.tenant else {}
        response = self.http.post(
            "/admin/cache/lookup", json={"request": request, "headers": relevant, **more}
        )
        assert response.status_code == 200, response.text
        return dict(response.json())

    def entries(self, **query: Any) -> list[dict[str, Any]]:
        """Return the stored entries that fit."""
        response = self.http.get("/admin/cache/entries", params=query)
        assert response.status_code == 200, response.text
        return list(response.json()["entries"])

    def metrics(self) -> str:
        response = self.http.get("/metrics")
        assert response.status_code == 200
        return response.text

    def close(self) -> None:
        self.http.close()
