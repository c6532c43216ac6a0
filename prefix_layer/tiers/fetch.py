"""What a sequence is about to get from the tiers. Pure."""

from dataclasses import dataclass, field

from prefix_layer.tiers.block_key import BlockKey
from prefix_layer.tiers.host import HostEntry


@dataclass(slots=True, eq=False)
class Fetch:
    """Consecutive blocks that a sequence wants, the first ``num_taken`` of which it has got.

    ``entries`` are those asked for and not taken yet; ``until_s`` is when to stop waiting.
    """

    keys: list[BlockKey]
    read_ahead: int
    num_taken: int = 0
    entries: dict[int, HostEntry] = field(default_factory=dict)
    until_s: float | None = None

    @property
    def next_depth(self) -> int:
        """The place in its sequence of the block to be taken next."""
        return self.keys[0].depth + self.num_taken
