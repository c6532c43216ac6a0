"""Server-sent events from bytes, cut anywhere. Knows no JSON and no connection.

Works on bytes to the end: a line break is never part of a longer UTF-8 character, so a read that
cuts a character in two cannot harm it.
Source: WHATWG HTML, "Server-sent events", 9.2.6 Interpreting an event stream.
"""

import re

from gateway.errors import BackendError

MAX_EVENT_BYTES = 32 << 20
BOM = b"\xef\xbb\xbf"

_LINE_END = re.compile(rb"\r\n|\n|\r")


class SseParser:
    """Gives the data of each event as its closing blank line arrives.

    Comments and fields other than ``data`` are dropped; several ``data`` lines of one event are
    joined by a line break.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._num_data_bytes = 0
        self._at_start = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more bytes; return the data of the events they complete.

        Raises:
            BackendError: an event that passes `MAX_EVENT_BYTES`.
        """
        events: list[bytes] = []
        for line in self._lines(chunk):
            if not line:
                if self._data:
                    events.append(self._take())
            elif line.startswith(b"data"):
                self._field(line)
        if len(self._rest) + self._num_data_bytes > MAX_EVENT_BYTES:
            raise BackendError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return events

    def close(self) -> list[bytes]:
        """Return the event that the end of the stream left without its blank line, if any."""
        events = self.feed(b"\n") if self._rest else []
        return [*events, self._take()] if self._data else events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._after_return and chunk:
            self._after_return = False
            chunk = chunk.removeprefix(b"\n")
        if not _LINE_END.search(chunk):
            self._rest += chunk
            return []
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(bytes(self._rest) + chunk)
        self._rest[:] = rest
        if self._at_start:
            self._at_start = False
            lines[0] = lines[0].removeprefix(BOM)
        return lines

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._num_data_bytes += len(value)

    def _take(self) -> bytes:
        data = b"\n".join(self._data)
        self._data.clear()
        self._num_data_bytes = 0
        return data
