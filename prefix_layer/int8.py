"""Rounds a model's weights to 8 bits, so that the kernel reads a quarter of the bytes.

Groups of weights share a scale; activations and sums stay float32, and a row's result never depends
on the rows beside it. Weights that fit into 8 bits as they are stay as they are.
"""

import torch
from torch import Tensor, nn

from prefix_layer.errors import ModelLoadError
from prefix_layer.loops import GROUP
from prefix_layer.narrow import NarrowKernel

_HIGHEST = 127


def round_weights(model: nn.Module, kernel: NarrowKernel | None) -> None:
    """Replace the weights of all linear layers of a float32 CPU model by their nearest of 8 bits.

    Raises:
        ModelLoadError: the model is not of that kind.
    """
    first = next(model.parameters())
    if first.dtype != torch.float32 or first.device.type != "cpu":
        raise ModelLoadError("weights int8 needs dtype float32 on device cpu")
    for module in model.modules():
        if type(module) is nn.Linear and module.in_features % GROUP == 0:
            small = None if kernel is None else kernel.pack(module.weight)
            if small is None or small.bits > _HIGHEST.bit_length() + 1:
                module.weight = nn.Parameter(_rounded(module.weight), requires_grad=False)


@torch.no_grad()
def _rounded(weight: Tensor) -> Tensor:
    groups = weight.view(weight.shape[0], -1, GROUP)
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(weight.dtype).tiny) / _HIGHEST
    return ((groups / scale).round() * scale).view_as(weight)
