"""What the tiers hold and have done, by tier; one that is off is left out."""

from collections import Counter
from typing import Literal

from prefix_layer.tiers.disk import DiskTier
from prefix_layer.tiers.host import HostTier

Tier = Literal["host", "disk"]


class Tally:
    """Counts of one engine's tiers; None stands for a tier that is off.

    ``num_loaded`` are blocks brought to the device, ``num_lost`` those that no memory was had for.
    """

    def __init__(self, host: HostTier | None, disk: DiskTier | None, block_size: int) -> None:
        self._host = host
        self._disk = disk
        self._block_size = block_size
        self.num_loaded: Counter[Tier] = Counter()
        self.num_lost = 0

    def bytes_by_tier(self) -> dict[str, int]:
        """Count what is kept; of a shared or ageing folder, as it was found a moment ago."""
        host = None if self._host is None else len(self._host) * self._host.block_bytes
        return _on(host, None if self._disk is None else self._disk.num_bytes)

    def tokens_by_tier(self) -> dict[str, int]:
        """Count the tokens whose KV was loaded from each tier."""
        size, loaded = self._block_size, self.num_loaded
        host = None if self._host is None else loaded["host"] * size
        return _on(host, None if self._disk is None else loaded["disk"] * size)

    def evictions_by_tier(self) -> dict[str, int]:
        """Count blocks that went to make room."""
        host = None if self._host is None else self._host.num_evicted
        return _on(host, None if self._disk is None else self._disk.num_evicted)

    def failures_by_tier(self) -> dict[str, int]:
        """Count blocks that no memory was had for, and calls that the disk refused."""
        host = None if self._host is None else self.num_lost
        return _on(host, None if self._disk is None else self._disk.num_failures)

    def broken_by_tier(self) -> dict[str, int]:
        """Count files that were not what their name says."""
        return _on(None, None if self._disk is None else self._disk.num_broken)


def _on(host: int | None, disk: int | None) -> dict[str, int]:
    counts = {"host": host, "disk": disk}
    return {tier: count for tier, count in counts.items() if count is not None}
