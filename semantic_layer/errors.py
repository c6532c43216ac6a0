"""Errors of the semantic layer. A broken part is a miss: callers catch these, count, and go on.

SemanticLayerError
├── StoreError               a store or index did its work badly or not at all
│   ├── StoreUnavailable     slow, down, or its breaker is open; the next call may work
│   ├── StoreLocked          another process holds the data directory
│   └── EntryCorrupt         stored bytes that are no entry of ours; read as absent
├── EmbedderFailed           the embedding model does not load, broke, or is closed
├── VerifierFailed           the verifier does not load, broke, or cannot be asked
├── RewriterFailed           the rewriter cannot be asked, or gave no text
├── TextTooLong              a text does not fit the embedder's window
├── ServerNotFound           no Valkey or Redis server binary on this machine
└── ServerFailed             the embedded server did not come up; names its log
"""


class SemanticLayerError(Exception):
    """Base of all errors this layer raises on purpose."""


class StoreError(SemanticLayerError):
    """A store or an index could not do what it was asked."""


class StoreUnavailable(StoreError):
    """The part is slow, down, or its breaker is open."""


class StoreLocked(StoreError):
    """Another process has the data directory open."""


class EntryCorrupt(StoreError):
    """Stored bytes do not decode to an entry."""


class ServerNotFound(SemanticLayerError):
    """No server binary: neither packaged for this platform nor on the PATH."""


class ServerFailed(SemanticLayerError):
    """The embedded server ended or stayed silent while starting."""


class EmbedderFailed(SemanticLayerError):
    """The embedding model does not load, broke at work, or is closed."""


class TextTooLong(SemanticLayerError):
    """A text does not fit the embedder's window; it must not be cut."""

    def __init__(self, size: str, window_tokens: int) -> None:
        super().__init__(f"{size} do not fit the window of {window_tokens} tokens")
        self.size = size
        self.window_tokens = window_tokens


class VerifierFailed(SemanticLayerError):
    """The verifier does not load, broke at work, or cannot be asked."""


class RewriterFailed(SemanticLayerError):
    """The rewriter cannot be asked, or gave no text."""
