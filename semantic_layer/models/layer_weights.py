"""What the layers of a BERT encoder are made of: sizes and tensors. Knows no files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class BertShape:
    """The sizes of a BERT encoder, as its config.json gives them."""

    hidden_size: int
    num_layers: int
    num_heads: int
    max_positions: int
    norm_eps: float
    activation: str

    @classmethod
    def of(cls, config: dict[str, Any]) -> BertShape:
        """Read the sizes from a transformers config."""
        return cls(
            hidden_size=config["hidden_size"],
            num_layers=config["num_hidden_layers"],
            num_heads=config["num_attention_heads"],
            max_positions=config["max_position_embeddings"],
            norm_eps=config.get("layer_norm_eps", 1e-12),
            activation=config.get("hidden_act", "gelu"),
        )


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """What one layer holds: (weight, bias) of its products and norms, float32.

    ``qkv`` is query, key and value one below the other.
    """

    qkv: tuple[torch.Tensor, torch.Tensor]
    out: tuple[torch.Tensor, torch.Tensor]
    attention_norm: tuple[torch.Tensor, torch.Tensor]
    up: tuple[torch.Tensor, torch.Tensor]
    down: tuple[torch.Tensor, torch.Tensor]
    output_norm: tuple[torch.Tensor, torch.Tensor]


def layer_weights(weights: Tensors, prefix: str) -> LayerWeights:
    """Take one layer's weights by the names that transformers gives them."""

    def pair(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        return weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"]

    projections = [pair(f"attention.self.{name}") for name in ("query", "key", "value")]
    return LayerWeights(
        qkv=(
            torch.cat([weight for weight, _ in projections]),
            torch.cat([bias for _, bias in projections]),
        ),
        out=pair("attention.output.dense"),
        attention_norm=pair("attention.output.LayerNorm"),
        up=pair("intermediate.dense"),
        down=pair("output.dense"),
        output_norm=pair("output.LayerNorm"),
    )
