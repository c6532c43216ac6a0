"""The compiled upper half of a joint encoder beside torch's: the same scores, or not at all."""

import shutil

import pytest
import torch

from semantic_layer.models import chosen_joint
from semantic_layer.models.chosen_joint import joined
from semantic_layer.models.compiled_joint import CompiledJoint, compiled_joint
from semantic_layer.models.joint_layers import Read, ReadPair, TorchJoint
from semantic_layer.models.layer_weights import BertShape
from semantic_layer.models.stacked_layers import stacked
from semantic_layer.models.weight_delta import Tensors
from tests.semantic_layer.models.test_compiled_layers import needs_bytes, random_layers

SHAPE = BertShape(128, 3, 4, 512, 1e-12, "gelu")
HIDDEN, NUM_WORDS = SHAPE.hidden_size, 9
ROUNDING = 0.05


def tensors(num_doubts: int = 32) -> Tensors:
    torch.manual_seed(7)
    sizes = {
        "align": (HIDDEN, 2 * HIDDEN + 1),
        "doubts": (num_doubts, HIDDEN),
        "mix": (HIDDEN, 2 * HIDDEN + num_doubts + 4),
        "out": (1, HIDDEN),
    }
    found = {"marks.weight": torch.randn(4, HIDDEN)}
    for name, (num_out, num_in) in sizes.items():
        found[f"{name}.weight"] = torch.randn(num_out, num_in) / num_in**0.5
        found[f"{name}.bias"] = torch.randn(num_out) / 10
    return found


def read(num_tokens: int) -> Read:
    ids = torch.randint(NUM_WORDS, (num_tokens,), dtype=torch.int32)
    return Read(ids, torch.randn(num_tokens, HIDDEN).bfloat16())


def pairs(*lengths: tuple[int, int]) -> list[ReadPair]:
    torch.manual_seed(11)
    return [(read(one), read(other)) for one, other in lengths]


@pytest.fixture(scope="module")
def both() -> tuple[CompiledJoint, TorchJoint]:
    plain = TorchJoint(tensors())
    begun, _ = plain.begin(pairs((5, 7), (9, 4)))
    plain.upper = stacked(random_layers(), SHAPE, begun)
    compiled = compiled_joint(tensors(), plain.upper)
    if compiled is None and shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    assert compiled is not None, "a compiler is here, and the loops did not compile"
    return compiled, plain


@needs_bytes
@pytest.mark.parametrize(
    "lengths", [[(1, 1)], [(3, 17)], [(16, 16)], [(70, 72)], [(2, 5), (40, 3), (8, 8)]], ids=str
)
def test_scores_equal_torch_when_texts_have_any_length(
    both: tuple[CompiledJoint, TorchJoint], lengths: list[tuple[int, int]]
) -> None:
    """Within rounding, however long the texts are and however many pairs a call has."""
    compiled, plain = both
    asked = pairs(*lengths)
    assert compiled(asked) == pytest.approx(plain(asked), abs=ROUNDING)


@needs_bytes
def test_score_is_the_same_to_the_bit_when_pairs_share_a_call(
    both: tuple[CompiledJoint, TorchJoint],
) -> None:
    """What is asked along with a pair moves no score, nor does the number of torch's threads."""
    compiled, _ = both
    asked = pairs((12, 9), (4, 30), (15, 15))
    alone = [compiled([pair])[0] for pair in asked]
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1 if num_threads > 1 else 2)
    try:
        assert compiled(asked) == alone
    finally:
        torch.set_num_threads(num_threads)


@needs_bytes
def test_pair_is_refused_when_it_is_longer_than_any_window(
    both: tuple[CompiledJoint, TorchJoint],
) -> None:
    """One named error, never a crash."""
    with pytest.raises(RuntimeError, match="2100 tokens"):
        both[0](pairs((1000, 1100)))


@needs_bytes
def test_compiled_loops_are_taken_where_they_agree_with_torch(
    both: tuple[CompiledJoint, TorchJoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops that disagree on a sample are not used, whatever made them wrong."""
    sample = pairs((5, 7), (9, 4))
    assert isinstance(joined(tensors(), random_layers(), SHAPE, sample), CompiledJoint)
    monkeypatch.setattr(chosen_joint, "compiled_joint", lambda *_: lambda p: [9.0] * len(p))
    assert isinstance(joined(tensors(), random_layers(), SHAPE, sample), TorchJoint)


def test_torch_takes_over_when_sizes_are_odd() -> None:
    """Doubts that do not fill whole tiles would lie elsewhere than the next product reads them."""
    found = joined(tensors(num_doubts=24), random_layers(), SHAPE, pairs((5, 7)))
    assert isinstance(found, TorchJoint)
