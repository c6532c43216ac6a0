"""Errors of a backend speak of the chat body; here they are put in the words of the API asked."""

import re
from collections.abc import Mapping, Sequence

from gateway.errors import BadRequest, StrataError

_PLACE = re.compile(r"\[\d+\]")
_MESSAGE = re.compile(r"^messages\[(?P<at>\d+)\](?P<rest>.*)$")


class Blame:
    """Names the field of the request as its caller knows it.

    ``renamed`` maps paths of the chat body, or of a list's items (``tools[].function``), to the
    API's, longest first; ``origins`` says where each chat message came from, ``whole`` all of them.
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
        place = _PLACE.search(param)
        known = param if place is None else _PLACE.sub("[]", param, count=1)
        for path, named in self._renamed.items():
            if known == path or known.startswith((f"{path}.", f"{path}[")):
                known = named + known[len(path) :]
                break
        return known if place is None else known.replace("[]", place[0], 1)
