"""In which order retrieved chunks go into a prompt, and what each order costs. Knows no tokenizer.

Prompts share only what they begin with alike. Chunks in the order of their relevance share little,
as each question ranks them anew; an order that follows earlier prompts shares much, and moves
relevant chunks away from the ends of the prompt, where models read best.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from typing import Literal, get_args

By = Literal["relevance", "id", "reuse"]
Key = tuple[str, bytes]

_CHARS_PER_TOKEN = 4
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrieved text under the id of its source; the place among others is its relevance."""

    chunk_id: str
    text: str

    @property
    def key(self) -> Key:
        """What tells it from others: a changed text is another chunk."""
        digest = blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES)
        return self.chunk_id, digest.digest()


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Chunks in one order, and its cost.

    ``reused_tokens`` were in an earlier prompt behind the same beginning, ``computed_tokens`` are
    the rest. ``disorder`` is the share of pairs (0..1) that stand otherwise than by relevance, and
    ``top_at`` where the most relevant chunk stands, from 0; None without chunks.
    """

    by: By
    chunks: tuple[Chunk, ...]
    reused_tokens: int
    computed_tokens: int
    disorder: float
    top_at: int | None


@dataclass(slots=True)
class _Node:
    """One place in the orders used so far."""

    num_orders: int = 0
    following: dict[Key, "_Node"] = field(default_factory=dict)


class ChunkOrder:
    """Remembers the last ``max_orders`` orders that went into prompts, and arranges new chunks.

    ``count_tokens`` measures a text; the default takes four characters for a token.

    Raises:
        ValueError: ``max_orders`` is below 1.
    """

    def __init__(
        self, count_tokens: Callable[[str], int] | None = None, max_orders: int = 4096
    ) -> None:
        if max_orders < 1:
            raise ValueError(f"max_orders must be at least 1, not {max_orders}")
        self._count_tokens = count_tokens or _estimate
        self._max_orders = max_orders
        self._root = _Node()
        self._orders: OrderedDict[tuple[Key, ...], None] = OrderedDict()
        self._hits: Counter[Key] = Counter()

    @property
    def hits(self) -> Mapping[str, int]:
        """How many remembered orders each chunk is in, by id."""
        counts: Counter[str] = Counter()
        for (chunk_id, _), count in self._hits.items():
            counts[chunk_id] += count
        return counts

    def options(self, chunks: Sequence[Chunk]) -> dict[By, Arrangement]:
        """Show every order with its cost; ``chunks`` come most relevant first."""
        return {by: self.arrange(chunks, by) for by in ("relevance", "id", "reuse")}

    def arrange(self, chunks: Sequence[Chunk], by: By) -> Arrangement:
        """Put chunks, most relevant first, in an order; changes nothing that is remembered.

        A chunk that comes twice counts once.

        Raises:
            ValueError: there is no such order, or two chunks have one id; names it.
        """
        _check(chunks, by)
        keys = {chunk.key: chunk for chunk in reversed(chunks)}
        ranked = list(dict.fromkeys(chunk.key for chunk in chunks))
        if by == "reuse":
            order = self._by_reuse(ranked, keys)
        else:
            order = ranked if by == "relevance" else sorted(ranked)
        reused = sum(self._num_tokens(keys[key]) for key in self._known(order))
        total = sum(self._num_tokens(keys[key]) for key in order)
        places = [order.index(key) for key in ranked]
        moved = [a > b for a, b in combinations(places, 2)]
        return Arrangement(
            by=by,
            chunks=tuple(keys[key] for key in order),
            reused_tokens=reused,
            computed_tokens=total - reused,
            disorder=sum(moved) / len(moved) if moved else 0.0,
            top_at=places[0] if places else None,
        )

    def note(self, arrangement: Arrangement) -> None:
        """Remember an order that went into a prompt."""
        order = tuple(chunk.key for chunk in arrangement.chunks)
        self._forget(order)
        self._orders[order] = None
        self._hits.update(order)
        node = self._root
        for key in order:
            node = node.following.setdefault(key, _Node())
            node.num_orders += 1
        while len(self._orders) > self._max_orders:
            self._forget(next(iter(self._orders)))

    def _forget(self, order: tuple[Key, ...]) -> None:
        if order not in self._orders:
            return
        del self._orders[order]
        self._hits.subtract(order)
        self._hits += Counter()
        node = self._root
        for key in order:
            following = node.following[key]
            following.num_orders -= 1
            if not following.num_orders:
                del node.following[key]
                return
            node = following

    def _by_reuse(self, ranked: list[Key], chunks: Mapping[Key, Chunk]) -> list[Key]:
        """Follow the earlier order that covers most of these chunks; the rest by use, then id."""
        sizes = {key: self._num_tokens(chunks[key]) for key in ranked}
        best: tuple[int, int, list[Key]] = (0, 0, [])
        for path, num_orders in self._paths(self._root, frozenset(ranked), []):
            covered = sum(sizes[key] for key in path)
            if (covered, num_orders) > best[:2]:
                best = (covered, num_orders, path)
        taken = best[2]
        rest = sorted(set(ranked) - set(taken), key=lambda key: (-self._hits[key], key))
        return [*taken, *rest]

    def _paths(
        self, node: _Node, wanted: frozenset[Key], path: list[Key]
    ) -> Iterator[tuple[list[Key], int]]:
        """Give every remembered beginning that is made of wanted chunks only."""
        for key in wanted & node.following.keys():
            following = node.following[key]
            longer = [*path, key]
            yield longer, following.num_orders
            yield from self._paths(following, wanted - {key}, longer)

    def _known(self, order: Sequence[Key]) -> Iterator[Key]:
        node = self._root
        for key in order:
            if (following := node.following.get(key)) is None:
                return
            yield key
            node = following

    def _num_tokens(self, chunk: Chunk) -> int:
        return self._count_tokens(chunk.text)


def _check(chunks: Sequence[Chunk], by: str) -> None:
    if by not in get_args(By):
        raise ValueError(f"by must be one of {', '.join(get_args(By))}, not {by!r}")
    texts: dict[str, str] = {}
    for chunk in chunks:
        if texts.setdefault(chunk.chunk_id, chunk.text) != chunk.text:
            raise ValueError(f"chunks: two texts have the id {chunk.chunk_id!r}")


def _estimate(text: str) -> int:
    return -(-len(text) // _CHARS_PER_TOKEN)
