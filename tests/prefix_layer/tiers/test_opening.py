"""How much room the tiers take: the host's limit holds, whatever serves the disk."""

from pathlib import Path

import pytest
import torch

from prefix_layer.config import EngineConfig
from prefix_layer.tiers.opening import open_tiers

BLOCK = torch.zeros(16, 2, 8)
BLOCK_BYTES = 2 * BLOCK.numel() * 4


@pytest.mark.parametrize(
    ("num_host_blocks", "num_kept"), [(0, 0), (1, 0), (4, 4), (10, 10), (1000, 1000)]
)
def test_host_stays_within_its_limit_when_it_serves_the_disk(
    tmp_path: Path, num_host_blocks: int, num_kept: int
) -> None:
    """A host tier has the slots of its limit; without one, slots only pass blocks on."""
    config = EngineConfig(
        model_path=tmp_path,
        host_kv_bytes=num_host_blocks * BLOCK_BYTES,
        disk_kv_bytes=100 * BLOCK_BYTES,
        kv_dir=tmp_path,
    )
    tiers = open_tiers(config, lambda _: [BLOCK, BLOCK], "model")
    assert tiers is not None
    assert tiers._keeps_host == (num_kept > 0)
    assert not num_kept or tiers._host.num_slots == num_kept
    tiers.close()
