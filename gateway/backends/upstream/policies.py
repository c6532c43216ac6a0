"""Which replica gets a request. Knows no HTTP and no clock.

Every policy chooses among replicas that may be sent requests now, and honours their weights.
"""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from gateway.backends.upstream.prefix import Prefix
from gateway.backends.upstream.replica import Replica

LOAD_BOUND = 1.25
LEAST_SHARE = 0.5
MAX_KNOWN = 100_000


class Policy(Protocol):
    """Chooses a replica for each request."""

    def choose(self, prefix: Prefix, replicas: Sequence[Replica]) -> Replica:
        """Return one of the replicas, of which there is at least one."""
        ...

    def served(self, prefix: Prefix, replica: Replica) -> None:
        """Take note that a replica has begun to answer this prefix."""
        ...

    def forget(self, replica: Replica) -> None:
        """Take note that a replica went down, and whatever it kept with it."""
        ...


class RoundRobin:
    """Every replica in its turn, as often as its weight says.

    Source: nginx's smooth weighted balancing: each turn adds every weight to its replica's
    credit, and the richest pays the sum.
    """

    def __init__(self) -> None:
        self._credits: dict[Replica, float] = {}

    def choose(self, prefix: Prefix, replicas: Sequence[Replica]) -> Replica:  # noqa: ARG002
        """Return the replica whose turn it is."""
        for replica in replicas:
            self._credits[replica] = self._credits.get(replica, 0.0) + replica.weight
        chosen = max(replicas, key=self._credits.__getitem__)
        self._credits[chosen] -= sum(replica.weight for replica in replicas)
        return chosen

    def served(self, prefix: Prefix, replica: Replica) -> None:
        """Do nothing."""

    def forget(self, replica: Replica) -> None:
        """Take its credit away."""
        self._credits.pop(replica, None)


class LeastBusy:
    """The replica with the fewest requests in flight per weight; equals in turn."""

    def __init__(self) -> None:
        self._turns = RoundRobin()

    def choose(self, prefix: Prefix, replicas: Sequence[Replica]) -> Replica:
        """Return the least busy replica."""
        least = min(replica.load for replica in replicas)
        return self._turns.choose(prefix, [each for each in replicas if each.load == least])

    def served(self, prefix: Prefix, replica: Replica) -> None:
        """Do nothing."""

    def forget(self, replica: Replica) -> None:
        """Take its credit away."""
        self._turns.forget(replica)


@dataclass(slots=True)
class _Known:
    """A prefix seen before: who has it, and whether it was a whole request once."""

    homes: frozenset[Replica] = frozenset()
    was_whole: bool = False


class PrefixAffinity:
    """The replica where most of the request's prefix lives, unless it is too busy.

    A conversation that goes on follows its last request. Another request follows the longest
    prefix that a replica is known to have seen, when that is at least `LEAST_SHARE` of it. The
    rest goes by the hash of where it parts from what is known, so that several gateways agree
    without a word. None has more than ``load_bound`` times its share of the requests in flight,
    nor, when it is chosen for what is new, of the prefixes that are remembered: caches are finite.
    Source: Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2016);
    Thaler, Ravishankar, "Using Name-Based Mappings to Increase Hit Rates" (1998).
    """

    def __init__(self, load_bound: float = LOAD_BOUND, max_known: int = MAX_KNOWN) -> None:
        self._load_bound = load_bound
        self._max_known = max_known
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._num_known: Counter[Replica] = Counter()
        self._idle = LeastBusy()

    def choose(self, prefix: Prefix, replicas: Sequence[Replica]) -> Replica:
        """Return the replica to send this prefix to."""
        if not prefix.keys:
            return self._idle.choose(prefix, replicas)
        roomy, seed = self._roomy(replicas), prefix.hint or self._parting(prefix)
        for key, length in zip(reversed(prefix.keys), reversed(prefix.lengths), strict=True):
            known = self._known.get(key)
            if known is None or not known.homes:
                continue
            if not known.was_whole and length < LEAST_SHARE * prefix.lengths[-1]:
                break
            if homes := [replica for replica in roomy if replica in known.homes]:
                least = min(replica.load for replica in homes)
                return _nearest(key, [each for each in homes if each.load == least])
            seed = key
        return _nearest(seed, self._light(roomy, len(prefix.keys)))

    def served(self, prefix: Prefix, replica: Replica) -> None:
        """Remember where the prefix lives."""
        for key in prefix.keys:
            known = self._known.setdefault(key, _Known())
            if replica not in known.homes:
                known.homes |= {replica}
                self._num_known[replica] += 1
            self._known.move_to_end(key)
        if prefix.keys:
            self._known[prefix.keys[-1]].was_whole = True
        while len(self._known) > self._max_known:
            self._num_known.subtract(self._known.popitem(last=False)[1].homes)

    def forget(self, replica: Replica) -> None:
        """Forget what lived on a replica."""
        for known in self._known.values():
            known.homes -= {replica}
        self._num_known.pop(replica, None)
        self._idle.forget(replica)

    def _roomy(self, replicas: Sequence[Replica]) -> list[Replica]:
        """Return the replicas that may take one more; never none."""
        num_requests = 1 + sum(replica.in_flight for replica in replicas)
        share = self._load_bound * num_requests / sum(replica.weight for replica in replicas)
        return [each for each in replicas if each.in_flight < math.ceil(share * each.weight)]

    def _light(self, replicas: Sequence[Replica], num_new: int) -> list[Replica]:
        """Return the replicas that may keep so many prefixes more; never none."""
        num_known = num_new + sum(self._num_known[replica] for replica in replicas)
        share = self._load_bound * num_known / sum(replica.weight for replica in replicas)
        return [each for each in replicas if self._num_known[each] < share * each.weight]

    def _parting(self, prefix: Prefix) -> bytes:
        """Return the shortest prefix that nobody is known to have seen, else the longest."""
        unknown = (key for key in prefix.keys if key not in self._known)
        return next(unknown, prefix.keys[-1])


def _nearest(key: bytes, replicas: Sequence[Replica]) -> Replica:
    """Return the replica that weighted rendezvous hashing gives this key."""

    def score(replica: Replica) -> float:
        digest = blake2b(key + replica.url.encode(), digest_size=6).digest()
        return -replica.weight / math.log((int.from_bytes(digest) + 0.5) / 2**48)

    return max(replicas, key=score)


POLICIES: dict[str, Callable[[], Policy]] = {
    "affinity": PrefixAffinity,
    "round_robin": RoundRobin,
    "least_busy": LeastBusy,
}
