"""Models that come with Strata in ordinary packages, so that no model hub is needed.

Importing this brings in no torch; only a preparation that has work to do does.
"""

from gateway.bundled.catalogue import BUNDLED, CHAT, EMBEDDER, BundledModel
from gateway.bundled.errors import BundledModelError
from gateway.bundled.location import default_models_dir
from gateway.bundled.preparation import (
    BundledModels,
    ModelState,
    inspect,
    prepare,
    prepare_model,
    verify,
)

__all__ = [
    "BUNDLED",
    "CHAT",
    "EMBEDDER",
    "BundledModel",
    "BundledModelError",
    "BundledModels",
    "ModelState",
    "default_models_dir",
    "inspect",
    "prepare",
    "prepare_model",
    "verify",
]
