"""Finds the folder of a model that is named instead of bundled; knows the hub's client."""

import re
from collections.abc import Sequence
from pathlib import Path

from gateway.errors import StrataError

_HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_LIBRARY_NAME = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)?")
_LEAST = ("config.json",)
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
    return _download(name, _WANTED)


def check_library_model(name: str, owner: str) -> None:
    """Ask for a model that sentence-transformers loads; a short name may be of ``owner``.

    The library itself asks again and again where there is no network.

    Raises:
        ModelNotHere: it is no folder, not cached, and not to be had from the hub.
    """
    if Path(name).expanduser().exists() or not _LIBRARY_NAME.fullmatch(name):
        return  # the library tells what is wrong with a folder
    if "/" in name:
        _download(name, _LEAST)
        return
    try:
        _download(f"{owner}/{name}", _LEAST)
    except ModelNotHere:
        _download(name, _LEAST)


def served_name(name: str) -> str:
    """Return the model id to serve a named model under: a folder's last part, else the name."""
    folder = Path(name).expanduser()
    return folder.resolve().name if folder.is_dir() else name


def _download(name: str, wanted: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import, seldom needed
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(name, allow_patterns=list(wanted)))
    except LocalEntryNotFoundError:
        raise ModelNotHere(f"model {name!r}: not cached, and the hub cannot be reached") from None
    except (HfHubHTTPError, OSError) as error:
        raise ModelNotHere(f"model {name!r}: {str(error).strip().splitlines()[0]}") from error
