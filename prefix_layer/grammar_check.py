"""Tries grammars in a process of its own, which may hang or crash in the engine's place.

A grammar is a program that strangers write: some compile for hours, and deep ones overflow the
stack. Source: llguidance 1.9.1, `multipleOf` 9999991 takes 228 s, a chain of 2,000 ``$ref``s ends
in a segmentation fault. One that was tried costs the engine a second time what it took to try.
"""

import os
import queue
import select
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO

import msgspec

from prefix_layer.errors import BadGrammar
from prefix_layer.grammar import compile_grammar, load_vocabulary
from prefix_layer.messages import Grammar

TIMEOUT_S = 5.0
_START_S = 60.0
_STACK_BYTES = 4 << 20  # less than the engine's own threads have
_READY = b"ready\n"


class GrammarChecker:
    """The process and the line to it; thread-safe, one grammar at a time."""

    def __init__(self, model_path: Path, vocab_size: int, timeout_s: float = TIMEOUT_S) -> None:
        self._arguments = [str(model_path), str(vocab_size)]
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def check(self, grammar: Grammar) -> None:
        """Compile a grammar over there.

        Raises:
            BadGrammar: it is not usable, or the process did not survive it.
        """
        with self._lock:
            process = self._running()
            assert process.stdin is not None, "the process has pipes"
            assert process.stdout is not None, "the process has pipes"
            process.stdin.write(msgspec.json.encode(grammar) + b"\n")
            process.stdin.flush()
            answer = _read_line(process.stdout, self._timeout_s)
            if not answer:
                self._give_up(process)
        if answer is None:
            raise BadGrammar(f"it takes longer than {self._timeout_s:g} s to compile")
        if not answer:
            raise BadGrammar("it is nested too deeply")
        if fault := msgspec.json.decode(answer, type=str):
            raise BadGrammar(fault)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        process = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", "prefix_layer.grammar_check", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        weakref.finalize(self, _end, process)
        assert process.stdout is not None, "the process has pipes"
        if _read_line(process.stdout, _START_S) != _READY:
            _end(process)
            raise BadGrammar("this model's tokenizer is of no use to grammars")
        self._process = process
        return process

    def _give_up(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        _end(process)


def _read_line(stream: IO[bytes], timeout_s: float) -> bytes | None:
    """Return a line, nothing at the end of file; None when neither comes in time."""
    readable, _, _ = select.select([stream], [], [], timeout_s)
    return stream.readline() if readable else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _work(model_path: Path, vocab_size: int, lines: "queue.SimpleQueue[bytes]") -> None:
    try:
        vocabulary = load_vocabulary(model_path, vocab_size)
    except BadGrammar:
        os._exit(1)
    _say(_READY)
    while True:
        fault = ""
        try:
            compile_grammar(vocabulary, msgspec.json.decode(lines.get(), type=Grammar))
        except BadGrammar as error:
            fault = str(error)
        _say(msgspec.json.encode(fault) + b"\n")


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def main() -> None:
    """Compile what comes on stdin, line by line, until its end."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.stack_size(_STACK_BYTES)
    arguments = (Path(sys.argv[1]), int(sys.argv[2]), lines)
    threading.Thread(target=_work, args=arguments, daemon=True).start()
    for line in sys.stdin.buffer:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
