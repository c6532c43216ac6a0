"""What every test may ask for: the bundled models, prepared as a user's machine prepares them."""

import os
from pathlib import Path

import pytest

from gateway.bundled import BundledModels, default_models_dir, prepare


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The folder of prepared models; made on first use and kept between runs."""
    return Path(os.environ.get("STRATA_MODELS_DIR") or default_models_dir(os.environ))


@pytest.fixture(scope="session")
def bundled_models(models_dir: Path) -> BundledModels:
    return prepare(models_dir)


@pytest.fixture(scope="session")
def bundled_chat_model(bundled_models: BundledModels) -> Path:
    """SmolLM2-135M-Instruct as a transformers folder."""
    return bundled_models.chat_path


@pytest.fixture(scope="session")
def bundled_embedder(bundled_models: BundledModels) -> Path:
    """multilingual-e5-small as a sentence-transformers folder."""
    return bundled_models.embedder_path
