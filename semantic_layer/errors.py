"""Errors of the semantic layer. A broken part is a miss: callers catch these, count, and go on.

SemanticLayerError
├── StoreError               a store or index did its work badly or not at all
│   ├── StoreUnavailable     slow, down, or its breaker is open; the next call may work
│   └── StoreLocked          another process holds the data directory
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


class ServerNotFound(SemanticLayerError):
    """No server binary: neither packaged for this platform nor on the PATH."""


class ServerFailed(SemanticLayerError):
    """The embedded server ended or stayed silent while starting."""
