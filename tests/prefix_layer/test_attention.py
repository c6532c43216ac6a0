"""Attention over runs of slots is attention, wherever the slots lie and whatever a layer asks."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from prefix_layer.attention import AttentionOptions, Span, attend

HEADS, KV_HEADS, DIM, SLOTS = 4, 2, 8, 96


def formula(
    query: Tensor, key: Tensor, value: Tensor, start: int, options: AttentionOptions
) -> Tensor:
    """Write attention out, row by row, over keys and values (positions, kv_heads, dim)."""
    out = torch.empty_like(query)
    for row in range(query.shape[2]):
        position = start + row
        first = max(position - options.window + 1, 0) if options.window else 0
        for head in range(HEADS):
            keys = key[first : position + 1, head // (HEADS // KV_HEADS)]
            values = value[first : position + 1, head // (HEADS // KV_HEADS)]
            scores = keys @ query[0, head, row] * (options.scaling or DIM**-0.5)
            if options.softcap:
                scores = torch.tanh(scores / options.softcap) * options.softcap
            if options.sinks is not None:
                scores = torch.cat([scores, options.sinks[head : head + 1]])
            out[0, head, row] = torch.softmax(scores, 0)[: len(values)] @ values
    return out


OPTIONS = {
    "plain": AttentionOptions(),
    "scaled": AttentionOptions(scaling=0.9),
    "window": AttentionOptions(window=5),
    "softcap": AttentionOptions(softcap=0.7),
    "sinks": AttentionOptions(sinks=torch.tensor([0.5, -1.0, 3.0, 0.0])),
    "all": AttentionOptions(
        scaling=0.6, window=4, softcap=0.7, sinks=torch.tensor([0.5, -1.0, 3.0, 0.0])
    ),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_attention_equals_the_formula_when_slots_are_scattered(
    options: AttentionOptions, data: st.DataObject
) -> None:
    """One run, a few or many; one row or a chunk; with or without context before it."""
    start, rows = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 12))
    size = data.draw(st.sampled_from([1, 4, 64]))
    end = start + rows
    order = data.draw(st.permutations(range(SLOTS // size if size < 64 else 1)))
    slots = [block * size + i for block in order for i in range(size)][:end]
    runs: list[tuple[int, int]] = []
    for slot in slots:
        if runs and runs[-1][1] == slot:
            runs[-1] = (runs[-1][0], slot + 1)
        else:
            runs.append((slot, slot + 1))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    keys, values = torch.randn(2, SLOTS, KV_HEADS, DIM, generator=generator)
    query = torch.randn(1, HEADS, rows, DIM, generator=generator)
    new = tuple(kv[slots[start:]].transpose(0, 1)[None] for kv in (keys, values))
    span = Span(0, rows, start, runs)
    actual = attend(query, new, (keys, values), span, options)
    expected = formula(query, keys[slots], values[slots], start, options)
    assert math.isclose(float((actual - expected).abs().max()), 0, abs_tol=1e-5)
