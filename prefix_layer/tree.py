"""Views of the cached prefixes as a tree. Reads the index, changes nothing; knows no tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prefix_layer.block import Block
from prefix_layer.hashing import PUBLIC_SALT
from prefix_layer.messages import TreeNode
from prefix_layer.prefix_index import PrefixIndex, PrefixMatch

MAX_CONTINUATION = 4096  # tokens
PREVIEW_TOKENS = 64
ID_CHARS = 16

_Children = dict[Block | None, list[Block]]


def continuation(index: PrefixIndex, match: PrefixMatch, salt: bytes) -> list[int]:
    """Return the tokens cached behind a match, along the blocks that were reused most."""
    children = index.children()
    visible = (salt, PUBLIC_SALT)
    tokens: list[int] = []
    block: Block | None = match.blocks[-1] if match.blocks else None
    if match.partial is not None:
        block = match.partial.block
        tokens += block.token_ids[match.partial.num_tokens :]
    while len(tokens) < MAX_CONTINUATION:
        following = [child for child in children.get(block, []) if child.salt in visible]
        if not following:
            break
        block = max(following, key=lambda child: (child.num_hits, child.num_children))
        tokens += block.token_ids
    return tokens[:MAX_CONTINUATION]


@dataclass(slots=True)
class _Run:
    """A run of blocks of which each but the last has one child only."""

    blocks: list[Block]
    parent: "_Run | None"
    num_tokens_above: int
    depth: int

    @property
    def num_tokens(self) -> int:
        return self.num_tokens_above + sum(len(block.token_ids) for block in self.blocks)


def shared_prefixes(
    index: PrefixIndex, pins: Mapping[Block, int], limit: int, depth: int
) -> tuple[list[TreeNode], int]:
    """List the prefixes with most hits, at most ``depth`` branchings down; count all of them."""
    children = index.children()
    runs = _runs(children, depth)
    runs.sort(key=lambda run: (-run.blocks[-1].num_hits, -run.num_tokens))
    return [_node(run, children, pins.get(run.blocks[-1], 0)) for run in runs[:limit]], len(runs)


def _runs(children: _Children, depth: int) -> list[_Run]:
    runs: list[_Run] = []
    heads: list[tuple[Block, _Run | None]] = [(block, None) for block in children.get(None, [])]
    while heads:
        block, parent = heads.pop()
        run = _Run([block], parent, parent.num_tokens if parent else 0, _depth(parent))
        while (only := _only_child(children, block)) is not None:
            run.blocks.append(only)
            block = only
        runs.append(run)
        if run.depth < depth:
            heads += [(child, run) for child in children.get(block, [])]
    return runs


def _depth(parent: _Run | None) -> int:
    return 1 if parent is None else parent.depth + 1


def _only_child(children: _Children, block: Block) -> Block | None:
    """Give the one block that continues a run: same salt and as often used."""
    following = children.get(block, [])
    if len(following) != 1:
        return None
    child = following[0]
    same = child.num_hits == block.num_hits and child.salt == block.salt
    return child if same else None


def _node(run: _Run, children: _Children, num_pins: int) -> TreeNode:
    last = run.blocks[-1]
    return TreeNode(
        node_id=_node_id(last),
        parent_id=None if run.parent is None else _node_id(run.parent.blocks[-1]),
        salt=last.salt,
        num_tokens=run.num_tokens,
        num_own_tokens=run.num_tokens - run.num_tokens_above,
        num_hits=last.num_hits,
        num_refs=last.ref_count - num_pins,
        num_children=len(children.get(last, [])),
        depth=run.depth,
        is_pinned=num_pins > 0,
        token_ids=_first_tokens(run.blocks),
    )


def _node_id(block: Block) -> str:
    assert block.block_hash is not None
    return block.block_hash.hex()[:ID_CHARS]


def _first_tokens(blocks: Sequence[Block]) -> list[int]:
    tokens: list[int] = []
    for block in blocks:
        if len(tokens) >= PREVIEW_TOKENS:
            break
        tokens += block.token_ids
    return tokens[:PREVIEW_TOKENS]
