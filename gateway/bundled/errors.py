"""What can go wrong with a bundled model.

BundledModelError
├── SourceMissing   the package that carries the weights is not installed
├── SourceCorrupt   its file is not the one we know
├── ModelUnsound    the prepared model does not answer as it should
├── ModelsBusy      another process has been preparing for too long
└── CannotWrite     the models folder is not writable, or full
"""


class BundledModelError(Exception):
    """Base of all; its text is one line an operator can act on."""


class SourceMissing(BundledModelError):
    """The package that carries the weights is not installed."""


class SourceCorrupt(BundledModelError):
    """The packaged file is not the one we know."""


class ModelUnsound(BundledModelError):
    """The prepared model does not answer as it should, or its files were changed."""


class ModelsBusy(BundledModelError):
    """Another process holds the lock on the models folder."""


class CannotWrite(BundledModelError):
    """The models folder cannot be written to."""
