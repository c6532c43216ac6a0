"""Grammars as masks over a vocabulary. The home of llguidance; knows no model and no tensors.

llguidance it is because one Lark grammar can hold free text, JSON Schemas and what triggers them,
what it cannot do it refuses by name, and it brings nothing along (MIT, one abi3 wheel for every
Python). Source: measured with SmolLM2's 49k tokens on 2 cores: typical schemas compile in
0.5 to 10 ms and a mask takes 25 to 90 µs; xgrammar 0.2.9 takes 5 to 36 ms and 2 to 13 µs, and needs
pydantic, triton and tvm-ffi; outlines-core 0.2 knows regular languages only. A mask is made while
the model computes the logits it applies to, so the time to compile is what a user waits for.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from prefix_layer.errors import BadGrammar
from prefix_layer.messages import Grammar

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions

_MAX_ERROR_CHARS = 300
_LIMITS = LLParserLimits(max_lexer_states=25_000, verbose_errors=False)
_JSON_OPTIONS: "JsonCompileOptions" = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
}


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A tokenizer's tokens; ``size`` is the width of the logits, which may exceed their number."""

    tokenizer: LLTokenizer
    size: int


class Matcher:
    """Follows one sequence through its grammar; its state is the tokens it has accepted."""

    def __init__(self, matcher: LLMatcher, vocab_size: int, stop_token_ids: list[int]) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._stop_ids = stop_token_ids

    def start(self, stop_token_ids: list[int]) -> "Matcher":
        """Return a matcher in this one's state for a sequence that ends on one of these tokens."""
        return Matcher(self._matcher.deep_copy(), self._vocab_size, stop_token_ids)

    @property
    def is_finished(self) -> bool:
        """Say whether the text is complete and nothing can follow it."""
        return self._matcher.is_stopped() and not self._matcher.is_error()

    @property
    def fault(self) -> str | None:
        """Why the sequence cannot go on: the grammar has become too complex, or leads nowhere."""
        if not self._matcher.is_error():
            return None
        error = _one_line(self._matcher.get_error())
        return "no text matches it" if error.startswith("NoExtension") else error

    def allowed(self) -> Mask:
        """Return which tokens may come next, (vocab_size,); none of them after a fault."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():
            return np.zeros(self._vocab_size, np.bool_)
        allowed = np.unpackbits(bits, count=self._vocab_size, bitorder="little").view(np.bool_)
        allowed[self._stop_ids] = self._matcher.is_accepting()
        return allowed

    def accept(self, token_id: int) -> None:
        """Go on by a token that was allowed."""
        self._matcher.consume_token(token_id)

    def take_forced(self) -> list[int]:
        """Return the tokens without which the text cannot go on, and go on by them."""
        forced = self._matcher.compute_ff_tokens()
        if forced:
            self._matcher.consume_tokens(forced)
        return forced


def load_vocabulary(model_path: Path, size: int) -> Vocabulary:
    """Read a model folder's tokenizer.

    Raises:
        BadGrammar: there is none, or none that grammars can use.
    """
    path = model_path / "tokenizer.json"
    try:
        return Vocabulary(LLTokenizer(path.read_text(encoding="utf-8"), n_vocab=size), size)
    except Exception as error:
        raise BadGrammar(
            f"this model's tokenizer is of no use to grammars: {_one_line(str(error))}"
        ) from error


def compile_grammar(vocabulary: Vocabulary, grammar: Grammar) -> Matcher:
    """Return a matcher at the beginning of the grammar.

    Raises:
        BadGrammar: the grammar is malformed, unsupported, too complex or matches nothing.
    """
    matcher = LLMatcher(vocabulary.tokenizer, _source(grammar), log_level=0, limits=_LIMITS)
    first = Matcher(matcher, vocabulary.size, [])
    if first.fault is None:
        first.allowed()
    if first.fault is not None:
        raise BadGrammar(first.fault)
    return first


def _source(grammar: Grammar) -> str:
    """Return the grammar as llguidance takes it; JSON is written as Python's ``json`` does."""
    match grammar.kind:
        case "lark":
            return LLMatcher.grammar_from_lark(grammar.text)
        case "regex":
            return LLMatcher.grammar_from_regex(grammar.text)
        case "json_schema":
            try:
                return LLMatcher.grammar_from_json_schema(grammar.text, overrides=_JSON_OPTIONS)
            except ValueError as error:
                raise BadGrammar(_one_line(str(error))) from error


def _one_line(text: str) -> str:
    return " ".join(text.replace("<non-verbose/>", "").split())[:_MAX_ERROR_CHARS]
