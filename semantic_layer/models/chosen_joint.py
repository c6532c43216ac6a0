"""Chooses what pairs of read texts are scored by: one call of our C loops, else torch."""

from collections.abc import Callable, Sequence

from semantic_layer.models.compiled_joint import compiled_joint
from semantic_layer.models.joint_layers import ReadPair, TorchJoint
from semantic_layer.models.layer_weights import BertShape, LayerWeights
from semantic_layer.models.stacked_layers import stacked
from semantic_layer.models.weight_delta import Tensors

_MOST_APART = 0.25  # of raw scores of a sample, which lie from -12 to 12; by rounding .02

Joint = Callable[[Sequence[ReadPair]], list[float]]


def joined(
    tensors: Tensors, upper: Sequence[LayerWeights], shape: BertShape, sample: Sequence[ReadPair]
) -> Joint:
    """Return what scores pairs, the compiled one where it gives a sample what torch does."""
    plain = TorchJoint(tensors)
    begun, _ = plain.begin(sample)
    plain.upper = stacked(upper, shape, begun)
    compiled = compiled_joint(tensors, plain.upper)
    if compiled is not None:
        both = zip(compiled(sample), plain(sample), strict=True)
        if all(abs(one - other) <= _MOST_APART for one, other in both):
            return compiled
    return plain
