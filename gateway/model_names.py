"""Which names of models become labels of metrics and keys of statistics. Knows no backend.

A client may send any name, and a pattern of an upstream may let any name in.
"""

from collections.abc import Callable

OTHER = "other"
MAX_LISTED = 256
MAX_ANSWERED = 64


class ModelNames:
    """Names that count by themselves: models that are listed, and others that have answered.

    All else is ``other``, and so is every model until `know` is called. Both kinds are bounded.
    """

    def __init__(self) -> None:
        self._is_listed: Callable[[str], bool] = lambda _: False
        self._is_served: Callable[[str], bool] = lambda _: False
        self._listed: set[str] = set()
        self._answered: set[str] = set()

    def know(self, is_listed: Callable[[str], bool], is_served: Callable[[str], bool]) -> None:
        """Take what tells whether a model has a name of its own, and whether anybody serves it."""
        self._is_listed, self._is_served = is_listed, is_served

    def of(self, model: str, *, answered: bool) -> str:
        """Return the name that a request for this model counts under."""
        if model in self._listed or model in self._answered:
            return model
        if self._is_listed(model):
            return _taken(self._listed, model, MAX_LISTED)
        if answered and self._is_served(model):
            return _taken(self._answered, model, MAX_ANSWERED)
        return OTHER


def _taken(names: set[str], name: str, most: int) -> str:
    if len(names) >= most:
        return OTHER
    names.add(name)
    return name
