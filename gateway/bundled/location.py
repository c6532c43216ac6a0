"""Where prepared models are kept unless a setting says otherwise."""

import sys
from collections.abc import Mapping
from pathlib import Path


def default_models_dir(environ: Mapping[str, str]) -> Path:
    """Return the user's cache folder for models; all data folders share it.

    Source: XDG Base Directory Specification; Apple's File System Programming Guide.
    """
    if cache_home := environ.get("XDG_CACHE_HOME"):
        return Path(cache_home) / "strata" / "models"
    home = Path(environ.get("HOME") or Path.home())
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "strata" / "models"
    return home / ".cache" / "strata" / "models"
