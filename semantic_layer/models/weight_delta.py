"""Weights kept as a coarse difference from another model's: four bits a number, a scale a row.

Pure. Source: BitDelta (Liu et al., 2024): what fine-tuning adds to weights bears coarse rounding.
"""

import torch

Tensors = dict[str, torch.Tensor]
STEPS, SCALES = ".steps", ".scales"
_MATRIX = 2
_MOST = 7  # steps to either side


def pack(weights: Tensors, base: Tensors) -> Tensors:
    """Return what has to be kept of these weights when those of ``base``, by name, are at hand.

    Matrices that ``base`` has are kept as differences, everything else in half precision.
    """
    kept: Tensors = {}
    for name, weight in weights.items():
        if name in base and weight.dim() == _MATRIX:
            delta = weight.float() - base[name].float()
            scales = (delta.abs().amax(1) / _MOST).clamp(min=1e-8).half()
            steps = (delta / scales.float()[:, None]).round().clamp(-_MOST, _MOST).to(torch.int16)
            lifted = (steps + _MOST + 1).to(torch.uint8)
            kept[name + STEPS] = lifted[:, ::2] * 16 + lifted[:, 1::2]
            kept[name + SCALES] = scales
        else:
            kept[name] = weight.half().contiguous()
    return kept


def unpack(kept: Tensors, base: Tensors) -> Tensors:
    """Return the weights, float32.

    Raises:
        KeyError: ``base`` lacks a matrix that was kept as a difference.
    """
    weights: Tensors = {}
    for name, tensor in kept.items():
        if name.endswith(STEPS):
            plain = name.removesuffix(STEPS)
            both = torch.stack([tensor // 16, tensor % 16], -1).flatten(1)
            steps = both.to(torch.float32) - (_MOST + 1)
            weights[plain] = base[plain].float() + steps * kept[plain + SCALES].float()[:, None]
        elif not name.endswith(SCALES):
            weights[name] = tensor.float()
    return weights
