"""A name for a model folder that changes when its answers may change. Pure: reads files only."""

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

_WEIGHT_SUFFIXES = (".safetensors", ".bin", ".gguf")
_NOT_MEANING = ("_name_or_path", "transformers_version")
_NUM_SAMPLES = 64
_SAMPLE_BYTES = 4096


def fingerprint_model(folder: Path, dtype: str) -> str:
    """Hash configuration, weights and dtype; stable across restarts and copies of the folder.

    Of each weight file its name, size, head (the whole safetensors header) and evenly spread
    samples are read, so the cost does not grow with the model.

    Raises:
        OSError: a file can't be read.
        ValueError: config.json is not JSON.
    """
    digest = blake2b(digest_size=16, person=b"strata.model")
    digest.update(_config_bytes(folder / "config.json"))
    digest.update(dtype.encode())
    for path in sorted(p for p in folder.iterdir() if p.suffix in _WEIGHT_SUFFIXES):
        digest.update(f"{path.name}:{path.stat().st_size}".encode())
        _hash_samples(digest, path)
    return digest.hexdigest()


def _config_bytes(path: Path) -> bytes:
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    kept = {key: value for key, value in config.items() if key not in _NOT_MEANING}
    return json.dumps(kept, sort_keys=True).encode()


def _hash_samples(digest: blake2b, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        header_bytes = int.from_bytes(head, "little") if path.suffix == ".safetensors" else 0
        digest.update(head + file.read(min(header_bytes, size)))
        for i in range(_NUM_SAMPLES):
            file.seek(i * max(size - _SAMPLE_BYTES, 0) // (_NUM_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
