"""An engine without a model: it says the prompt over and over, one token a step.

Run as ``python -m tests.fakes.engine`` it is an engine process. Its model folder's name decides how
it loads, and the first prompt token how a request goes: see the constants.
"""

import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from prefix_layer import (
    EngineConfig,
    EngineFailed,
    EngineStats,
    EngineUnavailable,
    Generate,
    ModelLoadError,
)
from prefix_layer.messages import Failed, Ready, Tokens
from prefix_layer.process import main

PROGRAM = (sys.executable, "-m", "tests.fakes.engine")
BROKEN = "broken"  # folder names
DIES_LOADING = "dies"
STEP_RAISES = 9001  # first prompt tokens
ADD_RAISES = 9002
HANGS = 9003
REFUSED = 9004
LAST_BREATH = 9005
CONTEXT = 64


class FakeEngine:
    """Same shape as `prefix_layer.engine.Engine`; ``num_steps`` counts its steps."""

    def __init__(self, config: EngineConfig) -> None:
        if config.model_path.name == BROKEN:
            raise ModelLoadError(f"no model in\n{config.model_path}")
        if config.model_path.name == DIES_LOADING:
            os.kill(os.getpid(), signal.SIGKILL)
        self.ready = Ready("", "fake-model", CONTEXT, 10_000, "float32", "cpu", 16, 64)
        self.num_steps = 0
        self._running: dict[str, tuple[Generate, int]] = {}

    @property
    def has_work(self) -> bool:
        return bool(self._running)

    def add(self, command: Generate) -> Failed | None:
        if command.prompt[0] == ADD_RAISES:
            raise ValueError("odd command")
        if command.prompt[0] == REFUSED:
            return Failed(command.request_id, "no room", "kv_exhausted")
        self._running[command.request_id] = (command, 0)
        return None

    def abort(self, request_id: str) -> None:
        self._running.pop(request_id, None)

    def step(self) -> list[Tokens | Failed]:
        self.num_steps += 1
        time.sleep(0.001)  # the time a step takes
        return [self._next(command, at) for command, at in list(self._running.values())]

    def _next(self, command: Generate, at: int) -> Tokens:
        match command.prompt[0]:
            case 9001:
                raise RuntimeError("step broke")
            case 9003:
                time.sleep(1e6)
            case 9005:
                os.kill(os.getpid(), signal.SIGKILL)
        last = at + 1 >= command.sampling.max_tokens
        if last:
            del self._running[command.request_id]
        else:
            self._running[command.request_id] = (command, at + 1)
        token = command.prompt[at % len(command.prompt)]
        return Tokens(command.request_id, [token], None, "length" if last else None)

    def stats(self, request_id: str) -> EngineStats:
        active = len(self._running)
        states = {"free": 64 - active, "cached": 0, "active": active}
        return EngineStats(request_id, 16, 64, states, {}, {}, {}, 0, active, active)

    def reset(self, *, keep_pinned: bool = False) -> None:
        return

    def rest(self) -> None:
        return


class FakeClient:
    """Stands for `EngineClient` in one process: plays the given events for every request.

    Where ``first`` is given, the first request gets that.
    """

    def __init__(
        self,
        folder: Path,
        script: Sequence[Tokens | Failed] = (),
        context_length: int = CONTEXT,
        first: Sequence[Tokens | Failed] | None = None,
    ) -> None:
        self.config = EngineConfig(folder)
        self.script = list(script)
        self._first = first
        self.commands: list[Generate] = []
        self.aborted = 0
        self.state = "ready"
        self.detail = ""
        self.ready = Ready("", "fake-model", context_length, 49_152, "float32", "cpu", 16, 64)

    async def wait_ready(self, timeout_s: float | None = None) -> Ready:
        if self.state != "ready":
            raise EngineUnavailable(self.detail)
        return self.ready

    async def generate(self, command: Generate) -> AsyncGenerator[Tokens, None]:
        self.commands.append(command)
        ended = False
        script, self._first = self.script if self._first is None else self._first, None
        try:
            for event in script:
                if isinstance(event, Failed):
                    ended = True
                    raise EngineFailed(event.code, event.message)
                ended = event.finish_reason is not None
                yield event
        finally:
            self.aborted += not ended

    async def close(self) -> None:
        self.state = "closed"


if __name__ == "__main__":
    sys.exit(main(FakeEngine))
