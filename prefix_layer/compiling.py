"""Sequences whose grammars are being compiled. Knows no blocks and no model."""

import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from prefix_layer.errors import BadGrammar
from prefix_layer.grammar import Matcher, Vocabulary, compile_grammar, load_vocabulary
from prefix_layer.grammar_check import GrammarChecker
from prefix_layer.messages import Grammar
from prefix_layer.sequence import Sequence

MAX_KEPT = 32  # compiled grammars
TIMEOUT_S = 15.0
_NAP_S = 0.02


class GrammarCompiler:
    """Compiles in a thread of its own what was tried elsewhere; keeps what was used last."""

    def __init__(self, model_path: Path, vocab_size: int) -> None:
        self._model_path = model_path
        self._vocab_size = vocab_size
        self._checker = GrammarChecker(model_path, vocab_size)
        self._kept: OrderedDict[Grammar, Future[Matcher]] = OrderedDict()

    def compile(self, grammar: Grammar) -> Future[Matcher]:
        """Return a matcher to start sequences with, soon or at once; it raises `BadGrammar`.

        What failed is tried again: it may have been for want of time.
        """
        known = self._kept.get(grammar)
        if known is None or (known.done() and known.exception() is not None):
            self._kept[grammar] = self._thread.submit(self._compile, grammar)
        self._kept.move_to_end(grammar)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)
        return self._kept[grammar]

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, thread_name_prefix="grammar")

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return load_vocabulary(self._model_path, self._vocab_size)

    def _compile(self, grammar: Grammar) -> Matcher:
        self._checker.check(grammar)
        return compile_grammar(self._vocabulary, grammar)


class _Job(NamedTuple):
    sequence: Sequence
    compiled: Future[Matcher]
    deadline_s: float


class Compiling:
    """Holds sequences back until they have a matcher, or a fault.

    Waiting longer than ``timeout_s`` is a fault too, as when many hostile grammars come at once.
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
                yield sequence, f"it was not compiled within {self._timeout_s:g} s"

    def _equip(self, sequence: Sequence, compiled: Future[Matcher]) -> str | None:
        try:
            sequence.matcher = compiled.result().start(sequence.sampling.stop_token_ids)
        except (BadGrammar, OSError) as error:
            return str(error)
        return None
