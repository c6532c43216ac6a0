"""Whether KV that leaves the device is worth keeping: not while nobody ever comes back for it.

Knows hashes only. Copying a block costs about 1% of computing it, which traffic without repeats
should not pay. Once so many blocks were kept in vain the gate shuts; what it turns away is
remembered by name, and the first request that would have used one opens it again.
"""

from prefix_layer.eviction.ghosts import Ghosts

TRIAL_BLOCKS = 512
MAX_REMEMBERED = 1 << 16


class SaveGate:
    """Lets ``trial`` blocks pass after each sign of use; remembers the last it turned away."""

    def __init__(self, trial: int = TRIAL_BLOCKS, max_remembered: int = MAX_REMEMBERED) -> None:
        self._trial = trial
        self._max_remembered = max_remembered
        self._num_left = trial
        self._turned_away = Ghosts()

    @property
    def is_open(self) -> bool:
        """Whether the next block may pass."""
        return self._num_left > 0

    def lets_pass(self, own_hash: bytes) -> bool:
        """Say whether to keep a block."""
        if self._num_left > 0:
            self._num_left -= 1
            return True
        self._turned_away.add(own_hash, self._max_remembered)
        return False

    def looked_for(self, own_hash: bytes) -> None:
        """Take note that a request wants a block that the device does not hold."""
        if own_hash in self._turned_away:
            self._turned_away.discard(own_hash)
            self.used()

    def used(self) -> None:
        """Take note that a kept block came back."""
        self._num_left = self._trial
