"""A stored answer given again as a backend would give it: in readable pieces, at a pace.

Knows no API and no clock: a piece carries how many tokens it stands for, and who plays it waits.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import regex

from gateway.answer import Answer, Choice
from gateway.backends.base import Delta, Event, Final, Finish, TokenLogprob

# whole words with the space behind them; a run without spaces is cut between graphemes
_PIECE = regex.compile(r".{1,48}\s++(?![\p{M}\u200d])|.{1,48}$|\X{1,24}", regex.DOTALL)
_WORD = regex.compile(r"\S{1,16}\s++(?![\p{M}\u200d])|\X{1,6}", regex.DOTALL)


class Beat(NamedTuple):
    """One event and the tokens a model would have written for it."""

    event: Event
    num_tokens: float = 0


def replay(answer: Answer) -> Iterator[Event]:
    """Give the answer again: deltas, one finish per choice, the usage."""
    return (beat.event for beat in beats(answer, words=False))


def beats(answer: Answer, *, words: bool) -> Iterator[Beat]:
    """Give the answer's events with their share of its tokens, word by word if asked so."""
    pattern = _WORD if words else _PIECE
    num_chars = sum(map(_num_chars, answer.choices)) or 1
    rate = answer.usage.completion_tokens / num_chars
    if answer.extra:
        yield Beat(Delta(answer.choices[0].index, answer_extra=answer.extra))
    for choice in answer.choices:
        for delta in _deltas(choice, pattern):
            yield Beat(delta, rate * len(delta.text))
        yield Beat(Finish(choice.index, choice.finish_reason, choice.stop))
    yield Beat(Final(answer.usage))


def _num_chars(choice: Choice) -> int:
    return len(choice.text or "")


def _deltas(choice: Choice, pattern: "regex.Pattern[str]") -> Iterator[Delta]:
    index, text = choice.index, choice.text or ""
    if choice.extra:
        yield Delta(index, extra=choice.extra)
    if "logprobs" in choice.choice_extra:  # the completions API's, which belong to the text
        yield Delta(index, text, choice_extra=choice.choice_extra)
        return
    pieces = pattern.findall(text)
    entries = _by_piece(pieces, choice.logprobs or [])
    for piece, logprobs in zip(pieces, entries, strict=True) if entries else ():
        yield Delta(index, piece, logprobs=logprobs)
    if not entries and (text or choice.logprobs):
        yield Delta(index, text, logprobs=choice.logprobs or [])
    if choice.refusal is not None or choice.refusal_logprobs:
        yield Delta(index, refusal=choice.refusal, refusal_logprobs=choice.refusal_logprobs)
    for at, call in enumerate(choice.tool_calls):
        yield Delta(index, tool_calls=[call if "index" in call else {"index": at, **call}])
    if choice.choice_extra:
        yield Delta(index, choice_extra=choice.choice_extra)


def _by_piece(pieces: list[str], logprobs: list[TokenLogprob]) -> list[list[TokenLogprob]]:
    """Deal the entries to the pieces in which their tokens end; nothing if they don't fit."""
    entries: list[list[TokenLogprob]] = [[] for _ in pieces]
    ends = list(accumulate(len(piece.encode()) for piece in pieces))
    at = num_bytes = 0
    for entry in logprobs:
        num_bytes += len(entry.bytes or b"")
        while at < len(ends) and ends[at] < num_bytes:
            at += 1
        if at == len(ends):
            return []
        entries[at].append(entry)
    fits = not logprobs or (bool(ends) and num_bytes == ends[-1])
    return entries if fits else []
