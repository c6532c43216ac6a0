"""Errors of the prefix layer.

PrefixLayerError
├── ModelLoadError        the model folder is missing, broken, or can't be read as asked
│   └── UnsupportedModel  it loads, but paged attention would not compute what it means
├── BadGrammar            a grammar is malformed, unsupported, too complex or matches nothing
├── UnknownEviction       no eviction policy of that name; lists those there are
├── TraceError            no such trace or load, or a line of it can't be read; one line
├── EngineUnavailable     the engine process is starting, restarting, failed or closed
└── EngineFailed          one request ended without an answer; carries the `Failed` code
"""

from typing import Literal

FailureCode = Literal[
    "bad_grammar", "engine_error", "engine_restarted", "kv_exhausted", "prompt_too_long"
]


class PrefixLayerError(Exception):
    """Base of all errors of this layer."""


class ModelLoadError(PrefixLayerError):
    """The model can't be loaded; the message is one line that says what to mend."""


class UnsupportedModel(ModelLoadError):
    """The model has parts whose state the block pool can't hold."""


class BadGrammar(PrefixLayerError):
    """No answer can be made by this grammar; the message says what is wrong with it."""


class UnknownEviction(PrefixLayerError):
    """The configured eviction policy does not exist."""


class TraceError(PrefixLayerError):
    """A trace can't be read or made; the message is one line that says what to mend."""


class EngineUnavailable(PrefixLayerError):
    """No request can be sent to the engine now."""


class EngineFailed(PrefixLayerError):
    """A request ended without an answer."""

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
