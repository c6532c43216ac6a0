"""Reads whole logs: faults are found in this process, hits counted in a second one beside it.

A short log is not worth a second process.
"""

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor

from gateway.backends.tokenizer import Tokenizer
from gateway.lint.finding import BadRow, Finding, Report, reachable_tokens
from gateway.lint.hit_counter import Cache, HitCounter, Hits
from gateway.lint.linter import MAX_BAD, Linter
from gateway.lint.log_file import LogRow, decode_row, read_rows
from gateway.lint.tokens import PromptTokens

SHORT_ROWS = 2000
BATCH_ROWS = 500
MAX_AHEAD = 6  # batches the linter may be ahead of the counter

Batch = list[tuple[str, int, bytes]]  # rows as they are written: quick to hand on

_counter: list[HitCounter] = []  # of the second process


class LogReader:
    """Takes files one after the other, then `report`; ``told`` hears how many rows were read."""

    def __init__(
        self, cache: Cache, told: Callable[[int], None], tokens: PromptTokens | None = None
    ) -> None:
        tokens = tokens or PromptTokens(Tokenizer(cache.model_path))
        self._cache = cache
        self._told = told
        self._linter = Linter(tokens)
        self._near = HitCounter(cache, tokens)
        self._far: ProcessPoolExecutor | None = None
        self._ahead: list[Future[Hits]] = []
        self._batch: Batch = []
        self._num_rows = 0

    def read(self, file: str, lines: Iterable[bytes]) -> None:
        """Read one file."""
        for found in read_rows(lines):
            if not isinstance(found, LogRow):
                self._linter.bad_row(file, found.line, found.message)
                continue
            self._linter.read(file, found.line, found.row)
            self._batch.append((file, found.line, found.text))
            self._num_rows += 1
            if self._num_rows % BATCH_ROWS == 0:
                self._told(self._num_rows)
                self._count_batch()

    def report(self) -> Report:
        """Say what was found in all files."""
        hits = self._hits()
        findings = self._linter.findings()
        for file, line, message in hits.bad:
            self._linter.bad_row(file, line, message)
        return Report(
            requests=self._linter.num_requests,
            prompt_tokens=hits.num_tokens,
            hit_share=hits.share,
            reachable_share=self._reachable(hits, hits.num_cached, findings),
            reachable_most=self._reachable(hits, hits.num_ample, findings),
            findings=findings,
            bad=sorted(self._linter.bad, key=_place)[:MAX_BAD],
        )

    def _reachable(self, hits: Hits, num_found: int, findings: list[Finding]) -> float:
        """Return the share that is found without the faults, of what is ``num_found`` with them."""
        reachable = reachable_tokens(num_found, findings, self._cache.block_size)
        held = self._cache.num_blocks * self._cache.block_size * self._linter.num_requests
        reachable = max(hits.num_cached, min(reachable, held, hits.num_tokens))
        return reachable / max(hits.num_tokens, 1)

    def close(self) -> None:
        """Stop the second process; idempotent."""
        if self._far is not None:
            self._far.shutdown(cancel_futures=True)
            self._far = None

    def _count_batch(self) -> None:
        if self._num_rows > SHORT_ROWS and self._far is None:
            self._far = self._second_process()
        if self._far is None:
            return
        self._ahead.append(self._far.submit(_count, self._batch))
        self._batch = []
        if len(self._ahead) > MAX_AHEAD:
            self._ahead.pop(0).result()

    def _second_process(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_begin, initargs=(self._cache,))

    def _hits(self) -> Hits:
        if self._far is not None:
            return self._far.submit(_count, self._batch).result()
        for file, line, text in self._batch:
            self._near.read(file, line, decode_row(text))
        self._batch = []
        return self._near.hits()


def _begin(cache: Cache) -> None:
    _counter.append(HitCounter(cache))


def _count(batch: Batch) -> Hits:
    for file, line, text in batch:
        _counter[0].read(file, line, decode_row(text))
    return _counter[0].hits()


def _place(bad: BadRow) -> tuple[str, int]:
    return bad.file, bad.line
