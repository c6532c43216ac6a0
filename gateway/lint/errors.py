"""What can go wrong while a log is linted.

LintError        the log or an option of the linter cannot be used
"""

from gateway.errors import StrataError


class LintError(StrataError):
    """The log cannot be read as what it should be; the message is one line."""
