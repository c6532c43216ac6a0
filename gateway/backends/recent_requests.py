"""The requests of late in memory, so that what splits their prompts can be shown. Bounded."""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any


@dataclass(frozen=True, slots=True)
class RecentRequest:
    """Whose request it was, and what of it the prompt was made of."""

    salt: bytes
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


class RecentRequests:
    """The last requests, at most so many and so many characters of them; thread-safe."""

    def __init__(self, max_requests: int = 1024, max_chars: int = 8 << 20) -> None:
        self._max_requests = max_requests
        self._max_chars = max_chars
        self._num_chars = 0
        self._next = 0
        self._kept: OrderedDict[int, tuple[RecentRequest, int]] = OrderedDict()
        self._lock = Lock()

    def record(self, salt: bytes, body: dict[str, Any], num_chars: int) -> None:
        """Remember a request whose prompt has so many characters."""
        request = RecentRequest(salt, body["messages"], body.get("tools") or [])
        with self._lock:
            self._kept[self._next] = request, num_chars
            self._next += 1
            self._num_chars += num_chars
            while len(self._kept) > self._max_requests or self._num_chars > self._max_chars:
                self._num_chars -= self._kept.popitem(last=False)[1][1]

    def all(self) -> list[RecentRequest]:
        """Return them, oldest first."""
        with self._lock:
            return [request for request, _ in self._kept.values()]

    def newest(self, max_chars: int) -> list[RecentRequest]:
        """Return the newest, oldest first, of at most so many characters; one at least."""
        found: list[RecentRequest] = []
        with self._lock:
            for request, num_chars in reversed(self._kept.values()):
                max_chars -= num_chars
                if found and max_chars < 0:
                    break
                found.append(request)
        return found[::-1]
