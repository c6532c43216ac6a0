"""Model libraries kept from drawing over our own progress."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers.utils import logging as transformers_logging

_bars: Any = transformers_logging  # its functions carry no annotations


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Switch off the libraries' progress bars and notices while a model is loaded."""
    notices = logging.getLogger("sentence_transformers")
    level, shown = notices.level, _bars.is_progress_bar_enabled()
    notices.setLevel(logging.ERROR)
    _bars.disable_progress_bar()
    try:
        yield
    finally:
        notices.setLevel(level)
        if shown:
            _bars.enable_progress_bar()
