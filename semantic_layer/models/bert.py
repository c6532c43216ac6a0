"""The forward pass of a BERT encoder's folder. Knows no tokenizer, no pooling and no threads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import torch
from torch.nn import functional

from semantic_layer.models.layer_weights import BertShape, Tensors, layer_weights
from semantic_layer.models.mapped_tensor import WeightFile
from semantic_layer.models.stacked_layers import Sample, stacked


class Bert:
    """A BERT encoder from a transformers folder (config.json, model.safetensors).

    ``samples`` are the ids of a few texts of the kind it is for; ``num_layers`` keeps only so many
    of its lowest layers.
    """

    def __init__(
        self, folder: Path, samples: Sequence[Sequence[int]], num_layers: int | None = None
    ) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.shape = BertShape.of(config)
        file = WeightFile(folder / "model.safetensors")
        full = {name.removeprefix("bert."): name for name in file.names}
        kept = self.shape.num_layers if num_layers is None else num_layers
        self._words = file.mapped(full["embeddings.word_embeddings.weight"])
        self._places = (
            file.read(full["embeddings.position_embeddings.weight"])
            + file.read(full["embeddings.token_type_embeddings.weight"])[0]
        )
        self._norm = (
            file.read(full["embeddings.LayerNorm.weight"]),
            file.read(full["embeddings.LayerNorm.bias"]),
        )
        self._layers = stacked(
            [layer_weights(_layer_of(file, full, i), f"encoder.layer.{i}.") for i in range(kept)],
            self.shape,
            self._embedded(samples),
        )

    @torch.inference_mode()
    def __call__(self, texts: Sequence[Sequence[int]]) -> list[torch.Tensor]:
        """Encode the ids of texts to states ``(tokens, hidden)`` each."""
        x, rows = self._embedded(texts)
        x = self._layers(x, rows)
        return [x[text] for text in rows]

    def _embedded(self, texts: Sequence[Sequence[int]]) -> Sample:
        """Look the words up; return what the lowest layer is given."""
        rows = spans(list(map(len, texts)))
        ids = torch.tensor([id_ for text in texts for id_ in text])
        places = torch.tensor([place for text in texts for place in range(len(text))])
        x = functional.embedding(ids, self._words) + self._places[places]
        x = functional.layer_norm(x, (self.shape.hidden_size,), *self._norm, self.shape.norm_eps)
        return Sample(x, rows)


def spans(lengths: Sequence[int]) -> list[slice]:
    """Return where texts of these lengths lie when they stand one behind the other."""
    return [slice(start, stop) for start, stop in pairwise(accumulate(lengths, initial=0))]


def _layer_of(file: WeightFile, full: dict[str, str], number: int) -> Tensors:
    """Read one layer's tensors; ``full`` gives a tensor's name in the file."""
    prefix = f"encoder.layer.{number}."
    return {name: file.read(full[name]) for name in full if name.startswith(prefix)}
