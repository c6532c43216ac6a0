"""The C loops beside this file, ready to be called. Knows no tensors."""

import ctypes
import functools
import logging
from pathlib import Path

from native_library import CannotCompile, compiled

SOURCES = (
    *("narrow.c", "wide.c", "fixed.c", "half.c"),
    *("attend.c", "half_attend.c", "layers.c"),
)

log = logging.getLogger("strata.engine")


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Load the loops; None when this machine can't compile them."""
    try:
        return compiled("loops", Path(__file__).parent, SOURCES, ["-fopenmp"])
    except CannotCompile as error:
        log.info("no C loops (%s): the model runs on torch's operators alone", error)
        return None
