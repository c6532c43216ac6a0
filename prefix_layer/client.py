"""The engine process as seen from asyncio: spawned, supervised, asked.

Knows no model, no text and no socket; imports no torch. One `Connection` lives as long as one
process, so nothing of a process that died can reach its successor.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from prefix_layer.child import Child
from prefix_layer.config import EngineConfig
from prefix_layer.connection import Connection
from prefix_layer.errors import EngineFailed, EngineUnavailable
from prefix_layer.messages import (
    Command,
    EngineStats,
    Event,
    Failed,
    Generate,
    GetStats,
    GetTree,
    Hello,
    Probe,
    Probed,
    Ready,
    Reset,
    Tokens,
    Tree,
    UnpinAll,
    Warm,
    Warmed,
)

log = logging.getLogger("strata.engine")

EngineState = Literal["starting", "ready", "restarting", "failed", "closed"]

PROGRAM = (sys.executable, "-m", "prefix_layer.process")
FIRST_STARTS = 3  # tries for a process that dies, without a word, before it was ever ready
_LAST_WORDS_S = 1.0
_ASK_S = 30.0

Answer = TypeVar("Answer", bound=Event)


class _End(NamedTuple):
    """How one engine process came to its end; ``refused`` when it said that it cannot load."""

    reason: str
    loaded: bool = False
    refused: bool = False


class EngineClient:
    """Spawns an engine process, keeps one alive, and speaks with it.

    ``program`` is what is spawned. An engine that says nothing for ``hang_timeout_s`` while work
    waits is killed and restarted. ``backoff_s`` is the first pause before a restart; it doubles up
    to ``max_backoff_s`` until an engine becomes ready. A model that cannot be loaded at the first
    start is ``failed`` for good. A restarted engine is given what was pinned or made public again.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        program: Sequence[str] = PROGRAM,
        hang_timeout_s: float = 120.0,
        backoff_s: float = 0.1,
        max_backoff_s: float = 10.0,
    ) -> None:
        self.config = config
        self.state: EngineState = "starting"
        self.detail = "not started"
        self.ready: Ready | None = None
        self.num_restarts = 0
        self._program = tuple(program)
        self._hang_timeout_s = hang_timeout_s
        self._backoff_s = backoff_s
        self._max_backoff_s = max_backoff_s
        self._settled = asyncio.Event()
        self._connection: Connection | None = None
        self._child: Child | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._kept: dict[tuple[bytes, tuple[int, ...]], partial[Warm]] = {}

    @property
    def pid(self) -> int | None:
        """Process id of the engine; None while there is none."""
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Spawn the engine and return at once; loading goes on."""
        if self._supervisor is None and self.state != "closed":
            self.detail = "loading the model"
            self._supervisor = asyncio.create_task(self._supervise())

    async def wait_ready(self, timeout_s: float | None = None) -> Ready:
        """Wait until the engine takes commands.

        Raises:
            EngineUnavailable: it failed, was closed, or needs longer; the message says which.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._settled.wait()
        except TimeoutError:
            raise EngineUnavailable(f"engine is {self.state}: {self.detail}") from None
        if self.ready is None:
            raise EngineUnavailable(self.detail)
        return self.ready

    async def generate(self, command: Generate) -> AsyncGenerator[Tokens, None]:
        """Yield tokens as they come; closing the iterator aborts the sequence.

        Raises:
            EngineUnavailable: no engine takes commands now.
            EngineFailed: the engine gave the sequence up, or died over it.
        """
        async with contextlib.aclosing(self._connected().generate(command)) as events:
            async for tokens in events:
                yield tokens

    async def stats(self) -> EngineStats:
        """Read the engine's counters.

        Raises:
            EngineUnavailable: no engine takes commands now.
        """
        return await self._ask_soon(GetStats, EngineStats)

    async def reset(self, *, keep_pinned: bool = False) -> EngineStats:
        """Forget every cached block that no running sequence holds; return what is left.

        Raises:
            EngineUnavailable: no engine takes commands now.
        """
        stats = await self._ask_soon(partial(Reset, keep_pinned=keep_pinned), EngineStats)
        if not keep_pinned:
            self._kept.clear()
        return stats

    async def unpin_all(self) -> EngineStats:
        """Pin nothing any more, also after a restart; what is public stays so.

        Raises:
            EngineUnavailable: no engine takes commands now.
        """
        stats = await self._ask_soon(UnpinAll, EngineStats)
        self._kept = {
            key: partial(Warm, **{**question.keywords, "pin": None})
            for key, question in self._kept.items()
            if question.keywords["public"]
        }
        return stats

    async def probe(self, prompt: list[int], salt: bytes) -> Probed:
        """Ask what is cached of a prompt, without using it.

        Raises:
            EngineUnavailable: no engine takes commands now.
        """
        return await self._ask_soon(partial(Probe, prompt=prompt, salt=salt), Probed)

    async def tree(self, *, limit: int, depth: int) -> Tree:
        """List the most shared prefixes, at most ``depth`` branchings down.

        Raises:
            EngineUnavailable: no engine takes commands now.
        """
        return await self._ask_soon(partial(GetTree, limit=limit, depth=depth), Tree)

    async def warm(
        self, prompt: list[int], salt: bytes, *, pin: bool | None = None, public: bool = False
    ) -> Warmed:
        """Compute what is not cached of a prompt; pin, unpin or publish its blocks.

        Raises:
            EngineUnavailable: no engine takes commands now.
            EngineFailed: the engine gave it up, or may not pin so much.
        """
        question = partial(Warm, prompt=prompt, salt=salt, pin=pin, public=public)
        warmed = await self._ask(question, Warmed)
        key = (salt, tuple(prompt))
        if pin or public:
            self._kept[key] = question
        elif pin is False:
            self._kept.pop(key, None)
        return warmed

    async def close(self) -> None:
        """Stop the engine; what is in flight fails. Idempotent."""
        self._become("closed", "engine is closed")
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)

    async def _ask_soon(self, question: Callable[[str], Command], kind: type[Answer]) -> Answer:
        try:
            async with asyncio.timeout(_ASK_S):
                return await self._ask(question, kind)
        except TimeoutError:
            raise EngineUnavailable(f"engine gave no answer in {_ASK_S:g} s") from None

    async def _ask(self, question: Callable[[str], Command], kind: type[Answer]) -> Answer:
        answer = await self._connected().ask(question)
        if isinstance(answer, kind):
            return answer
        if isinstance(answer, Failed) and answer.code != "engine_restarted":
            raise EngineFailed(answer.code, answer.message)
        raise EngineUnavailable(self.detail)

    def _connected(self) -> Connection:
        if self._connection is None:
            raise EngineUnavailable(f"engine is {self.state}: {self.detail}")
        return self._connection

    def _become(self, state: EngineState, detail: str, ready: Ready | None = None) -> None:
        if self.state == "closed":
            return
        if state in {"restarting", "failed"} and state != self.state:
            log.warning("engine is %s: %s", state, detail)
        self.state, self.detail, self.ready = state, detail, ready
        if state in {"ready", "failed", "closed"}:
            self._settled.set()
        else:
            self._settled.clear()

    async def _supervise(self) -> None:
        was_ready = False
        num_failures = 0
        while True:
            end = await self._run_once()
            if self.state == "closed":
                return
            was_ready = was_ready or end.loaded
            num_failures = 1 if end.loaded else num_failures + 1
            if not was_ready and (end.refused or num_failures >= FIRST_STARTS):
                self._become("failed", end.reason)
                return
            self._become("restarting" if was_ready else "starting", end.reason)
            self.num_restarts += 1
            pause_s = self._backoff_s * 2.0 ** min(num_failures - 1, 16)
            await asyncio.sleep(min(pause_s, self._max_backoff_s))

    async def _run_once(self) -> _End:
        try:
            child = await Child.spawn(self._program, self.config)
        except OSError as error:
            return _End(f"engine process cannot be started: {error}", refused=True)
        self._child = child
        connection = Connection(child.socket)
        end = _End("engine is closed")
        try:
            end = await self._attend(child, connection)
        finally:
            self._child = self._connection = None
            if self.state == "ready":
                self._become("restarting", end.reason)
            connection.close("engine_restarted", end.reason)
            await child.stop()
        return end

    async def _attend(self, child: Child, connection: Connection) -> _End:
        exited = asyncio.create_task(child.wait())
        hello = asyncio.create_task(connection.ask(Hello))
        try:
            await asyncio.wait({exited, hello}, return_when=asyncio.FIRST_COMPLETED)
            if not hello.done():
                await asyncio.wait({hello}, timeout=_LAST_WORDS_S)
            answer = hello.result() if hello.done() else None
            if isinstance(answer, Failed):
                return _End(answer.message, refused=True)
            if not isinstance(answer, Ready):
                return _End(f"engine process ended while loading ({await exited})")
            child.remove_folder()
            self._connection = connection
            self._become("ready", "", answer)
            warming = asyncio.create_task(_warm_again(connection, list(self._kept.values())))
            try:
                return _End(await self._watch(child, connection, exited), loaded=True)
            finally:
                warming.cancel()
        finally:
            exited.cancel()
            hello.cancel()

    async def _watch(self, child: Child, connection: Connection, exited: asyncio.Task[str]) -> str:
        """Wait until the engine is of no more use, and say why."""
        while True:
            done, _ = await asyncio.wait(
                {exited, connection.receiver},
                timeout=self._hang_timeout_s / 4,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if exited in done:
                return f"engine process ended ({exited.result()})"
            if done:
                return f"engine process sent nonsense: {connection.receiver.exception()}"
            if connection.silent_s > self._hang_timeout_s:
                child.kill()
                return f"engine process hung for {connection.silent_s:.0f} s"


async def _warm_again(connection: Connection, kept: Sequence[partial[Warm]]) -> None:
    """Give a new engine what its predecessor had pinned; what it refuses is left out."""
    for question in kept:
        await connection.ask(question)
