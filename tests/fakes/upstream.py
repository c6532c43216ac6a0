"""A scripted OpenAI-compatible HTTP server on a real socket; what it answers is up to the test."""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

Ending = Literal["clean", "cut"]


class Gate:
    """A point in an answer where the fake waits until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        self.opened.set()

    async def passed(self) -> None:
        self.reached.set()
        await asyncio.to_thread(self.opened.wait, 60)


@dataclass(frozen=True)
class Call:
    """One request that the fake received."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What the fake sends: each piece is one write; ``cut`` drops the connection at the end."""

    pieces: Sequence[bytes | Gate]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    ending: Ending = "clean"


Script = Callable[[Call], Answer]


def event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def chunk(
    delta: dict[str, Any], *, index: int = 0, finish: str | None = None, **more: Any
) -> bytes:
    return event(
        {
            "id": "up-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "stub-model",
            "choices": [{"index": index, "delta": delta, "finish_reason": finish, **more}],
        }
    )


def usage_chunk(prompt: int = 5, completion: int = 3, cached: int = 0) -> bytes:
    return event({"id": "up-1", "choices": [], "usage": usage(prompt, completion, cached)})


def usage(prompt: int = 5, completion: int = 3, cached: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def streamed(texts: Sequence[str], *, finish: str = "stop") -> list[bytes]:
    """Return the events of a complete streamed answer, one delta a text."""
    return [
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": text}) for text in texts),
        chunk({}, finish=finish),
        usage_chunk(completion=len(texts)),
        DONE,
    ]


def in_two_parts(gate: "Gate") -> Answer:
    """Return a streamed answer, "first last", whose second word waits at the gate."""
    first, last = (
        chunk({"role": "assistant", "content": "first "}),
        chunk({"content": "last"}, finish="stop"),
    )
    return Answer([first, gate, last, usage_chunk(), DONE])


def whole(text: str, *, finish: str = "stop", **message: Any) -> Answer:
    """Return a complete answer that is no stream."""
    body = {
        "id": "up-1",
        "object": "chat.completion",
        "created": 1,
        "model": "stub-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, **message},
                "finish_reason": finish,
            }
        ],
        "usage": usage(),
    }
    return Answer([json.dumps(body).encode()], headers={"content-type": "application/json"})


def refusal(status: int, body: Any, **headers: str) -> Answer:
    """Return an error answer; header names are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        [json.dumps(body).encode()], status, {"content-type": "application/json", **named}
    )


def vectors(rows: Sequence[Sequence[float] | str], *, prompt: int = 4) -> Answer:
    """Return an embeddings answer."""
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    body = {"object": "list", "data": data, "model": "e", "usage": {"prompt_tokens": prompt}}
    return Answer([json.dumps(body).encode()], headers={"content-type": "application/json"})


def last_user_text(call: Call) -> str:
    content = call.body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def echo(call: Call) -> Answer:
    """Answer every prompt with itself."""
    text = f"ECHO:{last_user_text(call)}"
    return Answer(streamed([text[i : i + 5] for i in range(0, len(text), 5)]))


def split_at(pieces: Sequence[bytes], offset: int) -> list[bytes]:
    """Return the same bytes in two writes."""
    joined = b"".join(pieces)
    return [joined[:offset], joined[offset:]]


class FakeUpstream:
    """Serves in a thread of its own from `__enter__` to `__exit__`."""

    def __init__(self, script: Script = echo, *, models: Sequence[str] = ("stub-model",)) -> None:
        self.script = script
        self.models = list(models)
        self.calls: list[Call] = []
        self.left_early = threading.Semaphore(0)
        self.num_connections = 0
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.num_connections += 1
        head: bytes | None = b""
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while head is not None:
                    head = await self._answer(await _read(head, reader), reader, writer)
        finally:
            writer.close()

    async def _answer(
        self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Send one answer; return what came of the next request so far, None when it is over."""
        if call.method == "GET":
            listed = {"object": "list", "data": [{"id": name} for name in self.models]}
            answer = Answer(
                [json.dumps(listed).encode()], headers={"content-type": "application/json"}
            )
        else:
            self.calls.append(call)
            answer = self.script(call)
        sending = asyncio.ensure_future(_send(answer, writer))
        leaving = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            sending.cancel()
            self.left_early.release()
            return None
        leaving.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            sending.result()
        except ConnectionError:
            self.left_early.release()
            leaving.cancel()
            return None
        if answer.ending == "cut":
            leaving.cancel()
            writer.transport.abort()
            return None
        leaving.cancel()
        await asyncio.wait({leaving})
        return b"" if leaving.cancelled() else leaving.result() or None


async def _read(start: bytes, reader: asyncio.StreamReader) -> Call:
    head = start + await reader.readuntil(b"\r\n\r\n")
    request, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = request.split(" ")
    headers = dict(_header(line) for line in lines if line)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Call(method, path, headers, json.loads(body) if body else {})


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.lower(), value.strip()


async def _send(answer: Answer, writer: asyncio.StreamWriter) -> None:
    headers = {**answer.headers, "transfer-encoding": "chunked"}
    lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    for piece in answer.pieces:
        if isinstance(piece, Gate):
            await piece.passed()
        elif piece:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
    if answer.ending == "clean":
        writer.write(b"0\r\n\r\n")
    await writer.drain()
