"""Makes the masks of one step while the model computes its logits."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from prefix_layer.sampler import NO_MASKS
from prefix_layer.sequence import Sequence


class Masker:
    """One thread, which the first sequence with a grammar starts."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="masks")

    def begin(self, sequences: list[Sequence]) -> Callable[[], Mapping[Sequence, Tensor]]:
        """Start on the sequences that have a grammar; calling the result waits for the masks."""
        matchers = {s: s.matcher for s in sequences if s.matcher is not None}
        if not matchers:
            return lambda: NO_MASKS
        return self._thread.submit(
            lambda: {s: torch.from_numpy(m.allowed()) for s, m in matchers.items()}
        ).result
