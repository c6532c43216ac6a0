"""What can go wrong in a command, besides what the parts themselves name.

AdminApiError   the running gateway could not be asked, or refused
"""


class AdminApiError(Exception):
    """The gateway could not be asked, or refused; the message is one line."""
