"""Compiled encoder layers beside torch's: the same numbers, alone, side by side, or not at all."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.nn import functional

from semantic_layer.models import compiled_layers as compiled_layers_file
from semantic_layer.models import stacked_layers as stacked_layers_file
from semantic_layer.models.bert import spans
from semantic_layer.models.compiled_layers import (
    CompiledLayers,
    Loudness,
    compiled_layers,
    compiled_product,
    load_library,
)
from semantic_layer.models.layer_weights import BertShape, LayerWeights
from semantic_layer.models.stacked_layers import Sample, stacked
from semantic_layer.models.torch_layers import Layer, PlainLinear, TorchLayers

SHAPE = BertShape(128, 3, 4, 512, 1e-12, "gelu")
INNER = 256
LOUD_CHANNEL, LEAST_COSINE = 5, 0.998


def random_layers(hidden: int = SHAPE.hidden_size, inner: int = INNER) -> list[LayerWeights]:
    """Make layers whose numbers are as large as a trained model's."""
    torch.manual_seed(3)

    def product(num_out: int, num_in: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(num_out, num_in) / num_in**0.5, torch.randn(num_out) / 10

    def norm() -> tuple[torch.Tensor, torch.Tensor]:
        return 1 + torch.randn(hidden) / 10, torch.randn(hidden) / 10

    return [
        LayerWeights(
            product(3 * hidden, hidden), product(hidden, hidden), norm(),
            product(inner, hidden), product(hidden, inner), norm(),
        )
        for _ in range(SHAPE.num_layers)
    ]  # fmt: skip


def float32_layers() -> TorchLayers:
    return TorchLayers([Layer(each, SHAPE, PlainLinear) for each in random_layers()])


def sample(hidden: int = SHAPE.hidden_size) -> Sample:
    return Sample(torch.randn(12, hidden), spans([5, 7]))


needs_bytes = pytest.mark.cpu_flag("avx512_vnni")


@pytest.fixture(scope="module")
def compiled() -> CompiledLayers:
    even = Loudness(torch.ones(SHAPE.hidden_size), torch.ones(SHAPE.hidden_size))
    layers = compiled_layers(
        random_layers(), [even] * 3, SHAPE.num_heads, SHAPE.norm_eps, SHAPE.max_positions
    )
    if layers is None and shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    assert layers is not None, "a compiler is here, and the loops did not compile"
    return layers


@needs_bytes
@pytest.mark.parametrize("lengths", [[1], [4], [13], [16, 1], [3, 40, 7], [512], [25] * 9], ids=str)
def test_rows_equal_torch_when_texts_have_any_length(
    compiled: CompiledLayers, lengths: list[int]
) -> None:
    """Within the rounding of bytes of float32, however many texts and rows a call has."""
    x, texts = torch.randn(sum(lengths), SHAPE.hidden_size), spans(lengths)
    cosines = functional.cosine_similarity(compiled(x, texts), float32_layers()(x, texts))
    assert float(cosines.min()) > LEAST_COSINE


@needs_bytes
def test_rows_equal_torch_when_one_channel_is_louder_than_the_others() -> None:
    """What is measured on a sample keeps one loud channel from silencing its neighbours."""
    layers = random_layers()
    for layer in layers:
        layer.attention_norm[0][LOUD_CHANNEL] = layer.output_norm[0][LOUD_CHANNEL] = 60.0
    x, texts = torch.randn(40, SHAPE.hidden_size), spans([16, 24])
    wanted = TorchLayers([Layer(each, SHAPE, PlainLinear) for each in layers])(x, texts)
    found = stacked(layers, SHAPE, sample())
    assert isinstance(found, CompiledLayers) or load_library() is None
    others = [i for i in range(SHAPE.hidden_size) if i != LOUD_CHANNEL]
    cosines = functional.cosine_similarity(found(x, texts)[:, others], wanted[:, others])
    assert float(cosines.min()) > LEAST_COSINE


def test_torch_takes_over_when_bytes_do_not_give_what_float32_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Layers that disagree on a sample are not used, whatever made them wrong."""
    monkeypatch.setattr(stacked_layers_file, "compiled_layers", lambda *_: lambda x, _: -x)
    assert isinstance(stacked(random_layers(), SHAPE, sample()), TorchLayers)


@needs_bytes
def test_rows_depend_on_their_own_text_alone(compiled: CompiledLayers) -> None:
    """A text's rows are the same to the bit, whatever stands beside it and wherever it lies."""
    one, other = torch.randn(5, SHAPE.hidden_size), torch.randn(30, SHAPE.hidden_size)
    alone = compiled(one, spans([5]))
    beside = compiled(torch.cat([other, one, other]), spans([30, 5, 30]))
    assert torch.equal(beside[30:35], alone)


@needs_bytes
def test_given_rows_stay_as_they_are(compiled: CompiledLayers) -> None:
    """The caller's tensor is read only."""
    x = torch.randn(6, SHAPE.hidden_size)
    before = x.clone()
    compiled(x, spans([6]))
    assert torch.equal(x, before)


@needs_bytes
def test_rows_are_the_same_when_several_threads_call(compiled: CompiledLayers) -> None:
    """Helpers serve one caller at a time; the others compute the same without them."""
    inputs = [torch.randn(n, SHAPE.hidden_size) for n in (3, 17, 64, 5) * 8]
    alone = [compiled(x, spans([len(x)])) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda x: compiled(x, spans([len(x)])), inputs))
    assert all(torch.equal(a, b) for a, b in zip(alone, together, strict=True))


@needs_bytes
def test_text_is_refused_when_it_is_longer_than_any_window(compiled: CompiledLayers) -> None:
    """Attention that does not fit the stack is one named error, never a crash."""
    with pytest.raises(RuntimeError, match="3000 tokens"):
        compiled(torch.randn(3000, SHAPE.hidden_size), spans([3000]))


@needs_bytes
@pytest.mark.parametrize(("rows", "num_out", "num_in"), [(1, 1, 384), (27, 384, 769), (14, 64, 7)])
def test_product_equals_torch_when_sizes_are_odd(rows: int, num_out: int, num_in: int) -> None:
    """What is filled up to whole tiles is cut off again."""
    weight, bias, x = torch.randn(num_out, num_in), torch.randn(num_out), torch.randn(rows, num_in)
    product = compiled_product(weight, bias)
    if product is None and shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    assert product is not None, "a compiler is here, and the loops did not compile"
    wanted = functional.linear(x, weight, bias)
    assert product(x).shape == (rows, num_out)
    assert torch.allclose(product(x), wanted, atol=0.02 * float(wanted.abs().max() + 1))


def test_torch_takes_over_when_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Without a compiler the same layers run on torch alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert load_library.__wrapped__() is None


@pytest.mark.parametrize(("hidden", "inner"), [(64, 256), (128, 160)])
def test_torch_takes_over_when_sizes_are_odd(hidden: int, inner: int) -> None:
    """Sizes that do not divide into tiles are left to torch."""
    shape = BertShape(hidden, 3, 4, 512, 1e-12, "gelu")
    layers = stacked(random_layers(hidden, inner), shape, sample(hidden))
    assert isinstance(layers, TorchLayers)
    assert layers(torch.randn(4, hidden), spans([4])).shape == (4, hidden)


def test_torch_takes_over_when_the_cpu_has_no_products_of_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A library whose loops are not there is as good as none."""

    class WithoutLoops:
        def encoder_is_there(self) -> int:
            return 0

    monkeypatch.setattr(compiled_layers_file, "compiled", lambda *_: WithoutLoops())
    assert load_library.__wrapped__() is None
