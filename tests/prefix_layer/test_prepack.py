"""Faster layers compute the same, or are not used."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from prefix_layer.prepack import PrepackedGatedMLP, PrepackedLinear, prepack

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this machine has no oneDNN"
)


class GatedMLP(nn.Module):
    def __init__(self, activation: object) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(16, 24, bias=False)
        self.up_proj = nn.Linear(16, 24, bias=False)
        self.down_proj = nn.Linear(24, 16, bias=False)
        self.activation = activation

    def forward(self, rows: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.gate_proj(rows)) * self.up_proj(rows))


def build(activation: object = functional.silu) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 16), GatedMLP(activation), nn.Linear(16, 7))


@torch.inference_mode()
def test_outputs_are_equal_when_layers_are_prepacked() -> None:
    """Any number of rows, biases and gated blocks included."""
    model = build()
    inputs = [torch.randn(1, n, 16) for n in (1, 3, 600)]
    expected = [model(rows) for rows in inputs]
    prepack(model)
    assert isinstance(model[0], PrepackedLinear)
    assert isinstance(model[1], PrepackedGatedMLP)
    for rows, before in zip(inputs, expected, strict=True):
        torch.testing.assert_close(model(rows), before, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_block_stays_when_its_activation_is_another() -> None:
    """A gated block that is not SwiGLU is left alone; its linear layers are still made faster."""
    model = build(functional.relu)
    rows = torch.randn(1, 5, 16)
    before = model(rows)
    prepack(model)
    assert isinstance(model[1], GatedMLP)
    assert isinstance(model[1].gate_proj, PrepackedLinear)
    torch.testing.assert_close(model(rows), before, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_layer_stays_when_the_fast_one_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check at load is what decides."""
    forward = PrepackedLinear.forward
    monkeypatch.setattr(PrepackedLinear, "forward", lambda self, rows: forward(self, rows) * 1.01)
    model = build()
    prepack(model)
    assert type(model[0]) is nn.Linear
