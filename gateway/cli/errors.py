"""What can go wrong in a command, besides what the parts themselves name.

AdminApiError     the running gateway could not be asked, or refused
BackupFileError   a backup cannot be written or read, or is not whole
NoRow             a file of rows has none that can be read
"""


class AdminApiError(Exception):
    """The gateway could not be asked, or refused; the message is one line."""


class NoRow(Exception):
    """A file of rows has none that can be read; the message is one line."""


class BackupFileError(Exception):
    """A backup cannot be written or read, or is not whole; the message is one line."""
