"""Finds the folder of a model that is named instead of bundled; knows the hub's client."""

import re
from pathlib import Path

from gateway.errors import StrataError

_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_WANTED = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "**/config.json")


class ModelNotHere(StrataError):
    """The named model is neither a folder nor to be had from the hub."""


def find_model(name: str) -> Path:
    """Return the model's folder, downloading it if it is a hub name that is not cached yet.

    Raises:
        ModelNotHere: with one clear line.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not _HUB_NAME.fullmatch(name):
        raise ModelNotHere(f"model {name!r}: no such folder, and not a hub name like owner/name")
    return _download(name)


def served_name(name: str) -> str:
    """Return the model id to serve a named model under: a folder's last part, else the name."""
    folder = Path(name).expanduser()
    return folder.resolve().name if folder.is_dir() else name


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import, seldom needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(name, allow_patterns=list(_WANTED)))
    except LocalEntryNotFoundError:
        raise ModelNotHere(f"model {name!r}: not cached, and the hub cannot be reached") from None
    except (HfHubHTTPError, OSError) as error:
        raise ModelNotHere(f"model {name!r}: {str(error).strip().splitlines()[0]}") from error
