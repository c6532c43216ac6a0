"""What a joint encoder makes of two texts that were read alone, on torch's operators.

Knows no files. What is compiled does the same in one call; see joint.c.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.nn import functional

from semantic_layer.models.bert import spans
from semantic_layer.models.stacked_layers import Layers, Sample, product
from semantic_layer.models.weight_delta import Tensors

SHARPNESS = 20.0
HEADS = ("align", "doubts", "mix", "out")


class Read(NamedTuple):
    """One text after the lower layers: ids, int32, and states ``(tokens, hidden)``, bfloat16."""

    ids: torch.Tensor
    states: torch.Tensor


ReadPair = tuple[Read, Read]


class TorchJoint:
    """Scores pairs of texts that were read; the upper layers are given once they are known.

    Args:
        tensors: weights and biases of ``align``, ``doubts``, ``mix`` and ``out``, and ``marks``.
    """

    def __init__(self, tensors: Tensors) -> None:
        self.upper: Layers = lambda x, _: x
        self._marks = tensors["marks.weight"]
        self._align, self._doubts, self._mix, self._out = (
            product(tensors[f"{name}.weight"], tensors[f"{name}.bias"]) for name in HEADS
        )

    @torch.inference_mode()
    def __call__(self, pairs: Sequence[ReadPair]) -> list[float]:
        """Return the raw score of each pair."""
        (x, rows), matched = self.begin(pairs)
        x = self.upper(x, rows)
        first = x[[pair.start for pair in rows]]
        second = x[[row.start + len(one.ids) for row, (one, _) in zip(rows, pairs, strict=True)]]
        every = self._doubts(x)
        doubts = torch.stack([every[pair].amax(0) for pair in rows])
        mixed = torch.cat([first + second, (first - second).abs(), doubts, matched], -1)
        scores: list[float] = self._out(functional.gelu(self._mix(mixed))).squeeze(-1).tolist()
        return scores

    @torch.inference_mode()
    def begin(self, pairs: Sequence[ReadPair]) -> tuple[Sample, torch.Tensor]:
        """Return what the upper layers are given, and how well each pair's words match."""
        rows = spans([len(one.ids) + len(other.ids) for one, other in pairs])
        both = [(one.states.float(), other.states.float()) for one, other in pairs]
        faced, matched = zip(*(face(one, other) for one, other in both), strict=True)
        kinds = [kind for one, other in pairs for kind in _kinds(one, other)]
        states = torch.cat([states for pair in both for states in pair])
        x = states + self._marks[kinds] + self._align(torch.cat(faced))
        return Sample(x, rows), torch.stack(matched)


def face(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Hold the tokens of two texts, ``(tokens, hidden)`` each, against each other.

    Returns for every token, first text first, how it differs from the other text's tokens like it,
    its product with them, and the highest cosine: ``(tokens of both, 2 * hidden + 1)``; and of the
    highest cosines the least and the mean of each text ``(4,)``. Source: soft alignment as in
    Enhanced LSTM for Natural Language Inference (Chen et al., ACL 2017).
    """
    centre = torch.cat([one, other]).mean(0)
    cosine = functional.normalize(one - centre, dim=-1) @ functional.normalize(
        other - centre, dim=-1
    ).transpose(0, 1)
    like_one = (SHARPNESS * cosine).softmax(1) @ other
    like_other = (SHARPNESS * cosine.transpose(0, 1)).softmax(1) @ one
    best_one, best_other = cosine.amax(1), cosine.amax(0)
    states, like = torch.cat([one, other]), torch.cat([like_one, like_other])
    best = torch.cat([best_one, best_other])
    faced = torch.cat([states - like, states * like, best[:, None]], -1)
    lows, means = (
        sorted_pair(best_one.amin(), best_other.amin()),
        sorted_pair(best_one.mean(), best_other.mean()),
    )
    return faced, torch.stack([*lows, *means])


def sorted_pair(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lesser number first."""
    return torch.minimum(a, b), torch.maximum(a, b)


def _kinds(one: Read, other: Read) -> list[int]:
    """Say of each token which text it stands in and whether the other text holds it too."""
    first, second = one.ids.tolist(), other.ids.tolist()
    in_first, in_second = set(first), set(second)
    return [int(i in in_second) for i in first] + [2 + (i in in_first) for i in second]
