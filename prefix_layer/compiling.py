"""Sequences whose grammars are being compiled. Knows no blocks and no model."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import NamedTuple

from llguidance import LLMatcher

from prefix_layer.errors import BadGrammar
from prefix_layer.grammar import GrammarCompiler
from prefix_layer.sequence import Sequence

TIMEOUT_S = 10.0
_NAP_S = 0.02


class _Job(NamedTuple):
    sequence: Sequence
    compiled: Future[LLMatcher]
    deadline_s: float


class Compiling:
    """Holds sequences back until they have a matcher, or a fault.

    A grammar that takes longer than ``timeout_s`` is a fault; the thread it keeps busy is one of
    the compiler's, so the engine goes on.
    """

    def __init__(self, compiler: GrammarCompiler, timeout_s: float = TIMEOUT_S) -> None:
        self._compiler = compiler
        self._timeout_s = timeout_s
        self._jobs: dict[str, _Job] = {}

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, sequence: Sequence) -> None:
        """Have a sequence's grammar compiled, unless it is already."""
        grammar = sequence.sampling.grammar
        assert grammar is not None, f"{sequence} has no grammar"
        deadline_s = time.monotonic() + self._timeout_s
        job = _Job(sequence, self._compiler.compile(grammar), deadline_s)
        self._jobs[sequence.request_id] = job

    def abort(self, request_id: str) -> None:
        """Drop a sequence; unknown ids are ignored."""
        self._jobs.pop(request_id, None)

    def nap(self) -> None:
        """Wait for a moment, or until something is compiled."""
        if self._jobs:
            futures = [job.compiled for job in self._jobs.values()]
            wait(futures, timeout=_NAP_S, return_when="FIRST_COMPLETED")

    def take_done(self) -> Iterator[tuple[Sequence, str | None]]:
        """Give sequences that are ready to run, and those that can't with the fault."""
        for request_id, (sequence, compiled, deadline_s) in list(self._jobs.items()):
            if compiled.done():
                del self._jobs[request_id]
                yield sequence, self._equip(sequence, compiled)
            elif time.monotonic() > deadline_s:
                del self._jobs[request_id]
                yield sequence, f"it takes longer than {self._timeout_s:g} s to compile"

    def _equip(self, sequence: Sequence, compiled: Future[LLMatcher]) -> str | None:
        try:
            matcher = compiled.result()
        except BadGrammar as error:
            return str(error)
        sequence.matcher = self._compiler.start(matcher, sequence.sampling.stop_token_ids)
        return None
