"""Chooses what layers run on: our C loops where they agree with float32, else torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch.nn import functional

from semantic_layer.models.compiled_layers import Loudness, compiled_layers, compiled_product
from semantic_layer.models.layer_weights import BertShape, LayerWeights
from semantic_layer.models.torch_layers import Layer, Linear, PlainLinear, TorchLayers

_LEAST_COSINE = 0.995  # on the average of a sample's rows; of the bundled model it is .9996

Layers = Callable[[torch.Tensor, Sequence[slice]], torch.Tensor]


class Sample(NamedTuple):
    """Rows ``(tokens, hidden)`` that layers may be given, and where each text lies in them."""

    x: torch.Tensor
    texts: Sequence[slice]


@torch.inference_mode()
def stacked(weights: Sequence[LayerWeights], shape: BertShape, sample: Sample) -> Layers:
    """Return layers ready for use, compiled ones where they give a sample what float32 does."""
    loudness, wanted = _measured(weights, shape, sample)
    compiled = compiled_layers(
        weights, loudness, shape.num_heads, shape.norm_eps, shape.max_positions
    )
    if compiled is not None:
        cosines = functional.cosine_similarity(compiled(*sample), wanted)
        if float(cosines.mean()) >= _LEAST_COSINE:
            return compiled
    return TorchLayers([Layer(layer, shape, Linear) for layer in weights])


def product(weight: torch.Tensor, bias: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a linear layer, compiled where that is possible.

    Small products on torch's own threads wait for each other when a core is taken.
    """
    return compiled_product(weight, bias) or Linear(weight, bias)


def _measured(
    weights: Sequence[LayerWeights], shape: BertShape, sample: Sample
) -> tuple[list[Loudness], torch.Tensor]:
    """Return how loud each layer's channels are, and the sample's rows in the end; in float32."""
    x, loudness = sample.x.float(), []
    for each in weights:
        layer = Layer(each, shape, PlainLinear)
        attended = layer.attend(x, sample.texts)
        loudness.append(Loudness(x.abs().amax(0), attended.abs().amax(0)))
        x = layer.feed(attended)
    return loudness, x
