"""Errors of a backend speak of the chat body; here they are put in the words of the API asked."""

import re
from collections.abc import Mapping, Sequence

from gateway.errors import BadRequest, StrataError

_MESSAGE = re.compile(r"^messages\[(?P<at>\d+)\](?P<rest>.*)$")


class Blame:
    """Names the field of the request as its caller knows it.

    ``renamed`` maps chat fields to the API's; ``origins`` says where each chat message came from.
    """

    def __init__(self, renamed: Mapping[str, str], origins: Sequence[str], whole: str) -> None:
        self._renamed = renamed
        self._origins = origins
        self._whole = whole

    def __call__(self, error: StrataError) -> StrataError:
        """Return the error with its field, and the field in its message, renamed."""
        if not isinstance(error, BadRequest) or error.param is None:
            return error
        known, param = error.param, self._named(error.param)
        if param != known:
            error.message = error.message.replace(known, param, 1)
            error.param = param
        return error

    def _named(self, param: str) -> str:
        if param == "messages":
            return self._whole
        if found := _MESSAGE.match(param):
            at = int(found["at"])
            return self._origins[at] if at < len(self._origins) else self._whole
        head, dot, rest = param.partition(".")
        return self._renamed.get(head, head) + dot + rest
